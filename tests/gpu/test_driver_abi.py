"""The engine's declarations of the CUDA driver agree with the header of CUDA, where it is installed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from native import ROOT, CannotBuild, compiler, run

HEADER = ROOT / "engine" / "include" / "unisono" / "gpu" / "driver_abi.hpp"
VALUES = {
    "Result::success": "CUDA_SUCCESS",
    "Result::invalid_value": "CUDA_ERROR_INVALID_VALUE",
    "Result::out_of_memory": "CUDA_ERROR_OUT_OF_MEMORY",
    "Result::deinitialized": "CUDA_ERROR_DEINITIALIZED",
    "Result::no_device": "CUDA_ERROR_NO_DEVICE",
    "Result::not_ready": "CUDA_ERROR_NOT_READY",
    "Result::not_supported": "CUDA_ERROR_NOT_SUPPORTED",
    "DeviceAttribute::multiprocessors": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
    "DeviceAttribute::compute_capability_major": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
    "DeviceAttribute::compute_capability_minor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
    "DeviceAttribute::most_shared_bytes": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "DeviceAttribute::mps_enabled": "CU_DEVICE_ATTRIBUTE_MPS_ENABLED",
    "PointerAttribute::buffer_id": "CU_POINTER_ATTRIBUTE_BUFFER_ID",
    "PointerAttribute::device": "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
    "PointerAttribute::can_be_exported": "CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE",
    "FunctionAttribute::most_dynamic_shared_bytes": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
    "CaptureStatus::active": "CU_STREAM_CAPTURE_STATUS_ACTIVE",
    "CaptureStatus::invalidated": "CU_STREAM_CAPTURE_STATUS_INVALIDATED",
    "CaptureMode::relaxed": "CU_STREAM_CAPTURE_MODE_RELAXED",
    "host_memory_portable": "CU_MEMHOSTALLOC_PORTABLE",
    "host_memory_mapped": "CU_MEMHOSTALLOC_DEVICEMAP",
    "lazy_peer_access": "CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS",
    "stream_non_blocking": "CU_STREAM_NON_BLOCKING",
    "event_without_timing": "CU_EVENT_DISABLE_TIMING",
    "MemoryOperation::Kind::wait_32": "CU_STREAM_MEM_OP_WAIT_VALUE_32",
    "MemoryOperation::Kind::write_32": "CU_STREAM_MEM_OP_WRITE_VALUE_32",
    "MemoryOperation::Kind::wait_64": "CU_STREAM_MEM_OP_WAIT_VALUE_64",
    "MemoryOperation::Kind::write_64": "CU_STREAM_MEM_OP_WRITE_VALUE_64",
    "MemoryOperation::at_least": "CU_STREAM_WAIT_VALUE_GEQ",
    "MemoryOperation::in_order": "CU_STREAM_WRITE_VALUE_DEFAULT",
}
PROGRAM = """
#include <cuda.h>
#include "unisono/gpu/driver_abi.hpp"
using namespace unisono::cuda;
template <typename A, typename B> struct Same { static constexpr bool value = false; };
template <typename... A, typename... B> requires(sizeof...(A) == sizeof...(B))
struct Same<CUresult (*)(A...), Result (*)(B...)> {
    static constexpr bool value = ((sizeof(A) == sizeof(B)) && ...);
};
static_assert(sizeof(Uuid) == sizeof(CUuuid) && sizeof(IpcHandle) == sizeof(CUipcMemHandle));
static_assert(sizeof(MemoryOperation) == sizeof(CUstreamBatchMemOpParams));
using Wait = decltype(CUstreamBatchMemOpParams::waitValue);
static_assert(offsetof(MemoryOperation, address) == offsetof(Wait, address));
static_assert(offsetof(MemoryOperation, value) == offsetof(Wait, value64));
static_assert(offsetof(MemoryOperation, flags) == offsetof(Wait, flags));
"""


def cuda_header() -> Path:
    """Return the folder of cuda.h; skip the test if there is none."""
    compiler_of_cuda = shutil.which("nvcc")
    folders = [Path("/usr/local/cuda/include")]
    if compiler_of_cuda:
        folders.insert(0, Path(compiler_of_cuda).resolve().parents[1] / "include")
    for folder in folders:
        if (folder / "cuda.h").exists():
            return folder
    pytest.skip("SKIPPED, NOT TESTED: the declarations of the CUDA driver: cuda.h is not installed")


def test_the_declarations_agree_with_the_header_of_cuda(tmp_path):
    folder = cuda_header()
    try:
        found = compiler()
    except CannotBuild as error:
        pytest.skip(f"SKIPPED, NOT TESTED: the declarations of the CUDA driver: {error}")
    functions = re.findall(r'X\((\w+), "(\w+)"', HEADER.read_text())
    assert len(functions) > 40
    lines = [PROGRAM]
    lines += [
        f"static_assert(Same<decltype(&{symbol}), decltype(Functions::{name})>::value);" for name, symbol in functions
    ]
    lines += [
        f"static_assert(static_cast<int>({ours}) == static_cast<int>({cuda}));" for ours, cuda in VALUES.items()
    ]
    source = tmp_path / "declarations.cpp"
    source.write_text("\n".join(lines))
    run([found, "-std=c++20", "-fsyntax-only", "-I", ROOT / "engine" / "include", "-isystem", folder, source])
