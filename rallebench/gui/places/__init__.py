"""The places of the page, one module each: Build, Runs, Experiments, Data, Models."""
