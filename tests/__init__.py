"""Tests of privjax and of its experiments, and the oracles they use."""
