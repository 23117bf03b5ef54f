"""Runs the proved programs on CUDA tensors: lowering to device programs, kernels, and the connection between ranks."""
