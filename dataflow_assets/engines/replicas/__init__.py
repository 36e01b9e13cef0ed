"""Replicas: several processes, GPUs or machines that each hold one instance of a step's operator."""
