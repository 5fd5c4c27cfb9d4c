"""The waiting halves of the operators and sensors: they run in the triggerer, and start no JVM."""
