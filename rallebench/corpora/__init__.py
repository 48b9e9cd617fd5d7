"""Where passages come from: readers that stream a corpus file, and the store an index keeps."""
