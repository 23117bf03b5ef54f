"""The sentences about the GPUs of a machine, in English and Chinese."""

from unisono.message import Template

NO_GPU_ENGINE = Template(
    "gpu.no_gpu_engine",
    "the engine of this installation was built without support for GPUs",
    "本安装的引擎在构建时未包含 GPU 支持",
)
