"""One agent's episode at a time, live: watched while it goes on, edited and gone on with, kept as a run."""
