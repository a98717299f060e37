"""Recipes: whole small programs, to be copied; the tests run them."""
