"""What is on the page? Engines, the decoder processes they run in, and the rows they answer with."""
