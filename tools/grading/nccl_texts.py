"""What the page says about the predictions of NCCL calls."""

from __future__ import annotations

A100, H100, P4DE = "8 x A100, NVSwitch", "DGX H100, 1 node", "2 x p4de, EFA"
LIBFABRIC, TCP = "Polaris, 8 nodes, libfabric", "Polaris, 8 nodes, TCP"
PARAMETERS = {
    A100: "Preset `dgx-a100`. Fitted: near latency with Simple and LL128, near bandwidth, and the time that one "
    "process needs to enqueue the calls of 8 GPUs (a call, each further channel, each send or receive).",
    H100: "Preset `dgx-h100`. Fitted: near latency with LL, and the bandwidth of in-switch reduction.",
    P4DE: "Preset `aws-p4d`, near costs as above. Fitted: the latency that EFA adds, and the cost of a message. The "
    "best algorithm is assumed, because the choice of the plugin is not known.",
    LIBFABRIC: "Preset `polaris`. Fitted for the three setups: the bandwidth of a NIC, the rate of a GPU in an "
    "all-to-all, the cost of a message of up to 192 B; for each setup: the cost of a message, that of a message of a "
    "ring with LL, and that of a rendezvous. Both versions of NCCL share them.",
    TCP: "As above for the two setups with TCP, without the cost of short messages and of a rendezvous.",
}
EVERY_OTHER = "Fitted to the rows with 1 KiB, 4 KiB, ..., 1 GiB; graded on those with 2 KiB, 8 KiB, ..., 512 MiB."
TWO_NODES = (
    "Fitted to the rows of 2 nodes; graded on those of 8 nodes. NCCL 2.21 with setups 2 and 3 has no rows of 2 "
    "nodes: its numbers are those of NCCL 2.18."
)
FITTED_TO = {A100: EVERY_OTHER, H100: EVERY_OTHER, P4DE: EVERY_OTHER, LIBFABRIC: TWO_NODES, TCP: TWO_NODES}
REMARKS = """`python tools/grading/nccl_fit.py FILE` prints all 30 fitted numbers (`FITTED` in
`tools/grading/nccl_libraries.py`) and those that the presets contain. Other splits of the rows:

GENERALISATION

What carries over from 2 to 8 nodes:

- **The proxy.** A thread of each GPU hands each message to the NIC. A step takes the latency of NCCL's tables and the
  cost of each message of the step: channels on the NIC, two slices of a chunk in rings with Simple. The same cost per
  message gives the time of an all-to-all of short messages, which grows with the number of peers.
- **Channels.** Short calls use few of them, by NCCL's rules, so that a step has fewer messages.
- **Rendezvous.** On Slingshot, messages longer than 16 KiB cost more: from 2 MiB on with 8 ranks, 8 MiB with 32.
- **Inline messages.** All-to-alls with messages of up to 192 B, which the processor copies out of the GPU, are slow.

Where the predictions are wrong:

- Polaris, setups 3 and 4: many calls with LL on 8 nodes take three to five times as long as predicted, some of them
  not. The same messages on 2 nodes do not, and setup 5, with software matching, always does. Nothing in the model
  tells the two states apart; they look like messages that arrive before their receive is posted.
- Polaris, setups 3 and 4: all-to-alls of long vectors on 8 nodes take up to 1.5 times as long as predicted from 2
  nodes. The bytes of a NIC are the same; congestion at the receivers is a guess.
- Polaris, TCP: trees with Simple are up to twice as fast as predicted on 8 nodes.
- One-node times below 1 MiB are those of the host, not of the network: the A100 numbers say nothing about LL.
- The fit gives LL128 on A100 nearly the latency of Simple. It rests on few rows, perhaps of Simple."""
BLIND = (
    "Presets `dgx-a100`, `dgx-h100` and `gb200-nvl72`. NCCL's choice is not known, so that the best algorithm is "
    "assumed, but for one A100 host. One message between hosts costs nothing beyond NCCL's table of latencies."
)
BLIND_REMARKS = """The sizes are 64 KiB, 512 KiB, 4 MiB, 32 MiB, 256 MiB and 1 GiB on one host, and 1 KiB and 8 KiB
in addition on two. The form of the model was fixed before these results were read. The fit was repeated after that,
with another order of its steps and with the near latency of NCCL's table on Polaris, but before any prediction was
compared with them; nothing was changed afterwards. The search found no all-to-all on a machine of a preset."""
LATER_PARAMETERS = ""
LATER_REMARKS = ""
