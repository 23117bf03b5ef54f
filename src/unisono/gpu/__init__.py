"""Runs the proved programs on CUDA tensors: lowering to device programs, kernels, the connection between ranks."""
