"""`python -m asset_pipeline.cli`: the command line where its script is not on the path."""

from asset_pipeline.cli import main

main()
