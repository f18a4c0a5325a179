"""Tools of the project's own build, set-up and checks. They are not installed with the package."""
