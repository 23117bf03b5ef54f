"""The fake driver behaves like CUDA's where jobs depend on it."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import time
import traceback

import numpy as np
import pytest

from gpu import fake_driver
from gpu.fake_arrays import CudaArray, new_stream
from gpu.fake_driver import DriverError
from gpu.gpu_ranks import host_image
from gpu.host_kernel import INPUT, OUTPUT, Move, Ref, Step, packed, structures

FORK = multiprocessing.get_context("fork")
WAIT_32, WRITE_32 = 1, 2


class Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char * 64),)


class ValueOperation(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32), ("unused", ctypes.c_uint32), ("address", ctypes.c_uint64),
        ("value", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("rest", ctypes.c_uint32 * 5),
    )  # fmt: skip


def run_value_operation(driver, stream, kind, address, value):
    operation = ValueOperation(kind, 0, address, value)
    driver.cuStreamBatchMemOp_v2(stream, 1, ctypes.byref(operation), 0)


def attribute(driver, number, address):
    value = ctypes.c_uint64()
    driver.cuPointerGetAttribute(ctypes.byref(value), number, address)
    return value.value


def export(driver, address):
    handle = (ctypes.c_char * 64)()
    driver.cuIpcGetMemHandle(handle, address)
    return bytes(handle.raw)


def open_handle(driver, handle):
    address = ctypes.c_uint64()
    driver.cuIpcOpenMemHandle_v2(ctypes.byref(address), Handle.from_buffer_copy(handle), 1)
    return address.value


def in_processes(*functions, settings=""):
    """Run functions of (driver, pipe to the other) in new processes; return their exit codes."""
    fake_driver.library()
    ends = multiprocessing.Pipe()

    def main(function, end):
        try:
            function(fake_driver.start(settings), end)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    made = [FORK.Process(target=main, args=pair) for pair in zip(functions, ends, strict=False)]
    for process in made:
        process.start()
    for process in made:
        process.join()
    for end in ends:
        end.close()
    codes = [process.exitcode for process in made]
    for process in made:
        process.close()
    return codes


def test_arrays_keep_their_values_and_addresses_are_used_again_by_other_buffers():
    def work(driver, _):
        values = np.arange(1000.0)
        first = CudaArray(driver, values)
        assert np.array_equal(first.numpy(), values)
        assert np.array_equal(first[10:20].numpy(), values[10:20])
        address, number = first.address, attribute(driver, 7, first.address + 8)
        first.free()
        second = CudaArray(driver, values + 1)
        assert second.address == address
        assert attribute(driver, 7, address) != number
        assert driver.live()["allocations"] == 1
        assert driver.fake_misuses() == 0

    assert in_processes(work) == [0]


def test_memory_is_shared_by_handle_and_outlives_the_process_that_made_it():
    def make(driver, pipe):
        array = CudaArray(driver, np.arange(100, dtype=np.int64))
        pipe.send(export(driver, array.address))
        pipe.recv()
        assert array.numpy()[5] == 77
        os._exit(0)

    def use(driver, pipe):
        handle = pipe.recv()
        address = open_handle(driver, handle)
        assert open_handle(driver, handle) == address  # twice is once
        other = CudaArray(driver, np.full(100, 77))
        driver.cuMemcpyDtoDAsync_v2(address + 40, other.address, 8, 0)
        driver.cuStreamSynchronize(0)
        pipe.send("written")
        time.sleep(0.2)  # until the process has ended
        driver.cuMemcpyDtoDAsync_v2(other.address, address, 800, 0)
        assert other.numpy()[:7].tolist() == [0, 1, 2, 3, 4, 77, 6]
        driver.cuIpcCloseMemHandle(address)
        assert driver.live()["imports"] == 1
        driver.cuIpcCloseMemHandle(address)
        assert driver.live()["imports"] == 0
        with pytest.raises(DriverError, match="INVALID_VALUE"):
            open_handle(driver, handle)
        assert driver.fake_misuses() == 0

    assert in_processes(make, use) == [0, 0]


def test_wrong_use_of_memory_is_an_error():
    def work(driver, _):
        array, private = CudaArray(driver, np.zeros(100)), CudaArray(driver, np.zeros(100), shareable=False)
        address = array.address
        assert (attribute(driver, 10, address), attribute(driver, 10, private.address)) == (1, 0)
        for wrong in (
            lambda: driver.cuMemFree_v2(address + 8),
            lambda: driver.cuIpcGetMemHandle((ctypes.c_char * 64)(), address + 8),
            lambda: export(driver, private.address),
            lambda: open_handle(driver, bytes(64)),
            lambda: attribute(driver, 7, np.zeros(8).ctypes.data),
            lambda: driver.cuMemcpyDtoDAsync_v2(address + 8, private.address, 800, 0),
            lambda: run_value_operation(driver, 0, WRITE_32, address + 2, 1),
        ):
            with pytest.raises(DriverError, match="INVALID_VALUE"):
                wrong()
        with pytest.raises(DriverError, match="INVALID_CONTEXT"):
            open_handle(driver, export(driver, address))  # in the process that has exported it
        array.free()
        before = driver.fake_misuses()
        with pytest.raises(DriverError, match="INVALID_VALUE"):
            driver.cuMemFree_v2(address)
        assert driver.fake_misuses() == before + 1

    assert in_processes(work) == [0]


def test_use_after_free_is_a_crash_and_too_long_writes_are_noticed():
    def crash(driver, _):
        array = CudaArray(driver, np.zeros(100))
        address = array.address
        array.free()
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        ctypes.string_at(address, 8)

    def overflow(driver, _):
        array = CudaArray(driver, np.zeros(100))
        ctypes.memset(array.address + 800, 0, 1)
        array.free()
        assert driver.fake_misuses() == 1

    assert in_processes(crash, overflow) == [-signal.SIGSEGV, 0]


def test_a_wait_holds_up_its_stream_and_those_that_depend_on_it_only():
    def work(driver, _):
        flag = CudaArray(driver, np.zeros(4, np.uint32))
        waiting, free, legacy = new_stream(driver), new_stream(driver), new_stream(driver, blocking=True)
        result = CudaArray(driver, np.zeros(4), stream=waiting)
        driver.cuStreamSynchronize(0)
        run_value_operation(driver, waiting, WAIT_32, flag.address, 5)
        result.write(np.ones(4))
        event = ctypes.c_void_p()
        driver.cuEventCreate(ctypes.byref(event), 2)
        driver.cuEventRecord(event, waiting)
        assert driver.library.cuEventQuery(event) == 600
        driver.cuStreamWaitEvent(legacy, event, 0)
        for stream, expected in ((waiting, 600), (free, 0), (legacy, 600), (0, 0)):
            time.sleep(0.02)
            assert driver.library.cuStreamQuery(ctypes.c_uint64(stream)) == expected
        CudaArray(driver, np.ones(1), stream=free).numpy()
        run_value_operation(driver, free, WRITE_32, flag.address, 6)
        driver.cuStreamSynchronize(legacy)
        assert result.numpy().tolist() == [1] * 4
        for stream in (waiting, free, legacy):
            driver.cuStreamDestroy_v2(stream)
        driver.cuEventDestroy_v2(event)
        assert (driver.live()["streams"], driver.live()["events"]) == (0, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(CudaArray, "__del__")  # freeing waits for all streams
        assert in_processes(work) == [0]


def test_the_null_stream_waits_for_streams_that_do_not_opt_out():
    def work(driver, _):
        flag = CudaArray(driver, np.zeros(4, np.uint32))
        legacy, free = new_stream(driver, blocking=True), new_stream(driver)
        driver.cuStreamSynchronize(0)
        run_value_operation(driver, legacy, WAIT_32, flag.address, 1)
        driver.cuMemsetD32Async(flag.address + 4, 7, 1, 0)
        time.sleep(0.02)
        assert driver.library.cuStreamQuery(ctypes.c_uint64(0)) == 600
        run_value_operation(driver, free, WRITE_32, flag.address, 1)
        assert flag.numpy().tolist() == [1, 7, 0, 0]

    assert in_processes(work) == [0]


def test_a_forked_child_of_a_process_with_a_gpu_gets_errors():
    def work(driver, _):
        array = CudaArray(driver, np.zeros(4))
        child = os.fork()
        if child == 0:
            with pytest.raises(DriverError, match="NOT_INITIALIZED"):
                array.numpy()
            os._exit(driver.library.cuInit(0))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3

    assert in_processes(work) == [0]


def test_the_settings_describe_the_devices():
    def work(driver, _):
        count, value, uuid = ctypes.c_int(), ctypes.c_int(), (ctypes.c_char * 16)()
        driver.cuDeviceGetCount(ctypes.byref(count))
        driver.cuDeviceGetAttribute(ctypes.byref(value), 133, 1)
        driver.cuDeviceGetUuid_v2(uuid, 1)
        assert (count.value, value.value, uuid.raw[15]) == (2, 1, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
        assert in_processes(work, settings="devices=3;mps=1") == [0]


def test_a_captured_graph_is_replayed():
    def work(driver, _):
        stream, graph, runnable = new_stream(driver), ctypes.c_void_p(), ctypes.c_void_p()
        one, two = CudaArray(driver, np.ones(4), stream=stream), CudaArray(driver, np.zeros(4), stream=stream)
        status = ctypes.c_int()
        driver.cuStreamBeginCapture_v2(stream, 1)
        driver.cuStreamIsCapturing(stream, ctypes.byref(status))
        assert status.value == 1
        driver.cuMemcpyDtoDAsync_v2(two.address, one.address, 32, stream)
        driver.cuStreamEndCapture(stream, ctypes.byref(graph))
        assert two.numpy().tolist() == [0] * 4
        driver.cuGraphInstantiateWithFlags(ctypes.byref(runnable), graph, 0)
        one.write(np.full(4, 9.0))
        driver.cuGraphLaunch(runnable, stream)
        assert two.numpy().tolist() == [9] * 4
        driver.cuStreamBeginCapture_v2(stream, 1)
        with pytest.raises(DriverError, match="CAPTURE_UNSUPPORTED"):
            CudaArray(driver, np.ones(4))
        with pytest.raises(DriverError, match="CAPTURE_INVALIDATED"):
            driver.cuStreamEndCapture(stream, ctypes.byref(graph))

    assert in_processes(work) == [0]


def test_a_kernel_runs_on_its_stream():
    """A rank alone copies its input to its output."""
    image = host_image("float32", "sum", None, 16)
    copy = Move((Ref(0, INPUT),), (Ref(0, OUTPUT),), 400)

    def work(driver, _):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        driver.cuModuleLoadData(ctypes.byref(module), image)
        driver.cuModuleGetFunction(ctypes.byref(function), module, b"run_program")
        stream = new_stream(driver)
        source, result = CudaArray(driver, np.arange(100, dtype=np.float32)), CudaArray(driver, np.zeros(100, "f4"))
        program = CudaArray(driver, packed(0, 1, [Step(moves=(copy,))]))
        state, mailbox = (CudaArray(driver, np.zeros(10_000, np.uint8)) for _ in range(2))
        flag = CudaArray(driver, np.zeros(4, np.uint32))
        arrays = (program, state, mailbox, source, result)
        launch = structures(16).launch(*(array.address for array in arrays))
        launch.size, launch.timeout_ns = 1, 10**10
        run_value_operation(driver, stream, WAIT_32, flag.address, 1)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(launch))
        driver.cuLaunchKernel(function, 1, 1, 1, 512, 1, 1, 0, stream, parameters, None)
        ctypes.memset(ctypes.addressof(launch), 0, ctypes.sizeof(launch))  # the parameter was copied
        time.sleep(0.02)
        assert result.numpy().tolist() == [0] * 100
        run_value_operation(driver, 0, WRITE_32, flag.address, 1)
        driver.cuStreamSynchronize(stream)
        assert result.numpy().tolist() == list(range(100))
        driver.cuModuleUnload(module)
        assert driver.live()["modules"] == 0
        with pytest.raises(DriverError, match="INVALID_IMAGE"):
            driver.cuModuleLoadData(ctypes.byref(module), b"ELF")

    assert in_processes(work) == [0]
