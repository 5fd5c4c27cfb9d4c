"""The checkpoint doctor: inspects a flow's position, diagnoses what is wrong with it, and repairs it, without a JVM."""
