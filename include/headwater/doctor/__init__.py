"""The checkpoint doctor: what a flow's position rests on, what is wrong with it, and repairs. Without a JVM."""
