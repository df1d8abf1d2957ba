"""The gallery of a month: a folder of plain files that people open in a browser, from disk or from a bucket."""
