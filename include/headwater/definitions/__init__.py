"""What a pipeline declares: frozen values, each with the place in the user's code it came from."""
