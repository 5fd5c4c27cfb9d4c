"""Figures of pipelines for the tools that watch everything else: OpenTelemetry (pushed) and Prometheus (pulled)."""
