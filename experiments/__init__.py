"""One absl binary per table or figure group of the papers."""
