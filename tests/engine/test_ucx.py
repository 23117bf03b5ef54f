"""The transport over UCX. The tests need libucp, which ``pip install unisono[net]`` installs, and skip without it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import native
from unisono.bootstrap import ucx_search

FOLDER = native.ROOT / "build" / "native"
ABI = native.ROOT / "engine" / "src" / "far" / "ucx_abi.hpp"

# For each of our types: the type of UCX, and the fields of both.
STRUCTS = {
    "ContextParameters": (
        "ucp_params_t",
        "fields:field_mask features request_size request_init request_cleanup tag_sender_mask "
        "workers_are_shared:mt_workers_shared endpoints:estimated_num_eps "
        "processes_per_node:estimated_num_ppn name",
    ),
    "WorkerParameters": (
        "ucp_worker_params_t",
        "fields:field_mask thread_mode cpus:cpu_mask events user_data event_descriptor:event_fd flags name "
        "alignment:am_alignment client_id",
    ),
    "EndpointParameters": (
        "ucp_ep_params_t",
        "fields:field_mask address error_mode:err_mode on_error:err_handler.cb on_error_argument:err_handler.arg "
        "user_data flags socket_address:sockaddr connection_request:conn_request name local_address:local_sockaddr",
    ),
    "RequestParameters": (
        "ucp_request_param_t",
        "fields:op_attr_mask flags request on_sent:cb datatype user_data reply_buffer memory_kind:memory_type "
        "received_bytes:recv_info memory:memh",
    ),
    "ReceiveParameters": ("ucp_am_recv_param_t", "attributes:recv_attr reply_endpoint:reply_ep"),
    "HandlerParameters": (
        "ucp_am_handler_param_t",
        "fields:field_mask id flags on_message:cb argument:arg",
    ),
}
VALUES = {
    "Status::ok": "UCS_OK",
    "Status::in_progress": "UCS_INPROGRESS",
    "Status::busy": "UCS_ERR_BUSY",
    "Status::canceled": "UCS_ERR_CANCELED",
    "Status::last_error": "UCS_ERR_LAST",
    "ContextParameters::has_features": "UCP_PARAM_FIELD_FEATURES",
    "ContextParameters::has_shared_workers": "UCP_PARAM_FIELD_MT_WORKERS_SHARED",
    "ContextParameters::wakeup": "UCP_FEATURE_WAKEUP",
    "ContextParameters::active_messages": "UCP_FEATURE_AM",
    "WorkerParameters::has_thread_mode": "UCP_WORKER_PARAM_FIELD_THREAD_MODE",
    "WorkerParameters::has_alignment": "UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT",
    "WorkerParameters::serialized": "UCS_THREAD_MODE_SERIALIZED",
    "EndpointParameters::has_address": "UCP_EP_PARAM_FIELD_REMOTE_ADDRESS",
    "EndpointParameters::has_error_mode": "UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE",
    "EndpointParameters::has_error_handler": "UCP_EP_PARAM_FIELD_ERR_HANDLER",
    "EndpointParameters::report_failed_peer": "UCP_ERR_HANDLING_MODE_PEER",
    "RequestParameters::has_callback": "UCP_OP_ATTR_FIELD_CALLBACK",
    "RequestParameters::has_user_data": "UCP_OP_ATTR_FIELD_USER_DATA",
    "RequestParameters::has_flags": "UCP_OP_ATTR_FIELD_FLAGS",
    "RequestParameters::has_memory_kind": "UCP_OP_ATTR_FIELD_MEMORY_TYPE",
    "RequestParameters::eager": "UCP_AM_SEND_FLAG_EAGER",
    "RequestParameters::force": "UCP_EP_CLOSE_FLAG_FORCE",
    "RequestParameters::host_memory": "UCS_MEMORY_TYPE_HOST",
    "ReceiveParameters::is_kept_data": "UCP_AM_RECV_ATTR_FLAG_DATA",
    "ReceiveParameters::is_rendezvous": "UCP_AM_RECV_ATTR_FLAG_RNDV",
    "HandlerParameters::has_id": "UCP_AM_HANDLER_PARAM_FIELD_ID",
    "HandlerParameters::has_flags": "UCP_AM_HANDLER_PARAM_FIELD_FLAGS",
    "HandlerParameters::has_callback": "UCP_AM_HANDLER_PARAM_FIELD_CB",
    "HandlerParameters::has_argument": "UCP_AM_HANDLER_PARAM_FIELD_ARG",
    "HandlerParameters::whole_message": "UCP_AM_FLAG_WHOLE_MSG",
    "HandlerParameters::persistent_data": "UCP_AM_FLAG_PERSISTENT_DATA",
}


@pytest.fixture(scope="module")
def library() -> str:
    """Return the path of an installed UCX."""
    found = ucx_search.packaged_libraries()
    if not found:
        pytest.skip("SKIPPED, NOT TESTED: UCX (pip install libucx-cu12)")
    return found[0]


def assertions() -> list[str]:
    """Return the static assertions that compare our declarations with those of UCX."""
    lines = ["sizeof(ucx::Status) == sizeof(ucs_status_t)"]
    for ours, (theirs, fields) in STRUCTS.items():
        for field in fields.split():
            mine, _, other = field.partition(":")
            other = other or mine
            lines.append(f"offsetof(ucx::{ours}, {mine}) == offsetof({theirs}, {other})")
            lines.append(f"sizeof(ucx::{ours}::{mine}) == sizeof((({theirs}*)nullptr)->{other})")
    lines += [f"static_cast<long>(ucx::{ours}) == static_cast<long>({theirs})" for ours, theirs in VALUES.items()]
    return lines


def test_the_declarations_agree_with_the_headers_of_ucx(library, tmp_path):
    include = Path(library).parents[1] / "include"
    if not (include / "ucp" / "api" / "ucp.h").exists():
        pytest.skip(f"{library} comes without headers")
    source = tmp_path / "abi.cpp"
    checks = "\n".join(f'static_assert({line}, "");' for line in assertions())
    types = (
        'static_assert(sizeof(ucx::RequestParameters) >= sizeof(ucp_request_param_t), "");\n'
        'static_assert(sizeof(ucx::ContextParameters) >= sizeof(ucp_params_t), "");\n'
        'static_assert(sizeof(ucx::WorkerParameters) >= sizeof(ucp_worker_params_t), "");\n'
        'static_assert(sizeof(ucx::EndpointParameters) >= sizeof(ucp_ep_params_t), "");\n'
    )
    source.write_text(
        f'#include <ucp/api/ucp.h>\n#include "{ABI}"\nusing namespace unisono;\n{checks}\n{types}int main() {{}}\n'
    )
    native.run([
        native.compiler(), "-std=c++20", "-fsyntax-only", "-Wno-invalid-offsetof", f"-I{include}", source,
    ])  # fmt: skip


@pytest.mark.slow
def test_all_scenarios_pass_over_ucx(library):
    try:
        native.compiler()
    except native.CannotBuild as problem:
        pytest.skip(str(problem))
    native.build(FOLDER, "-O1 -Wall -Wextra -Werror", "-DUNISONO_BUILD_EXTENSION=OFF", "-DUNISONO_BASELINE_ONLY=ON")
    cases = native.write_inputs(FOLDER)[0]
    done = subprocess.run([FOLDER / "threads", cases, "1", library], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("UCX 1.")
    assert done.stdout.endswith("cases: passed\n")
