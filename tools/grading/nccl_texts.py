"""The texts of the page about the predictions of NCCL calls."""

from __future__ import annotations

A100, H100, P4DE = "8 x A100, NVSwitch", "DGX H100, 1 node", "2 x p4de, EFA"
OUTSIDE = "NCCL, machines that are not in the file"
LIBFABRIC, TCP = "Polaris, 8 nodes, libfabric", "Polaris, 8 nodes, TCP"
PARAMETERS = {
    A100: "Preset `dgx-a100`. Fitted: near bandwidth, and the time that one process needs to enqueue the calls of 8 "
    "GPUs (for each GPU: a call, a further channel, a send or receive).",
    H100: "Preset `dgx-h100`. Fitted: near latency with LL, and the bandwidth of in-switch reduction.",
    P4DE: "Preset `aws-p4d`, near bandwidth as above. Fitted: the cost of a message. The best algorithm is assumed, "
    "because the choice of the plugin is not known.",
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
REMARKS = """`python tools/grading/nccl_fit.py FILE` prints all 28 fitted numbers (`FITTED` in
`tools/grading/nccl_libraries.py`) and those that the presets contain. Other splits of the rows, with options of the
command; a number that no row is left for has the value of NCCL's tables, or a power of ten:

| option | fitted to | graded on | rows | median error |
|---|---|---|---:|---:|
|  | 2 nodes of Polaris, every other size elsewhere | 8 nodes, the other sizes | 690 | 11.3% |
| `--to 1MiB` | those rows of at most 1 MiB | rows above 1 MiB, all nodes | 604 | 38.4% |
| `--without "2x p4de"` | all machines but p4de | p4de | 21 | 16.5% |
| `--without "DGX H100"` | all machines but DGX H100 | DGX H100 | 21 | 13.3% |
| `--without 8xA100` | all machines but 8 x A100 | 8 x A100 | 84 | 131% |

Short vectors do not show bandwidths: NICs and TCP have values that no row decides on. The times of the 8 A100 are
mostly those of their one process, and no other row of the fit has such a process.

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
- Reduce-scatters and all-gathers of 4 to 32 MiB on 8 A100 take up to 1.3 times as long as predicted."""
BLIND = """Presets `dgx-a100`, `dgx-h100`, `gb200-nvl72` and `aws-p5`. Where NCCL's choice is not known, the best
algorithm is assumed. Rows that calibrate are not in the median. Nothing is fitted to the other rows, but they are not
blind:

1. The first six machines were compared with frozen presets once: 40 rows, median error 28.6 %.
2. Then the commands of the sources were read (Azure runs one process for all GPUs, and forces the algorithm), two
   mistakes of the model were corrected (bytes of a call do not move before all ranks have started; trees on two hosts
   are limited by the near links of a GPU), and these presets were frozen.
3. Three further machines were compared once: 18 rows, median error 35.4 %. p5 was predicted with the latency that
   the plugin reports for p4d, and took a third of it; between hosts with RDMA NICs, short calls took twice as long as
   predicted.
4. The latency of p5 is now fitted to its rows. On the machines with RDMA NICs, every protocol now has the latency
   that NCCL's table has for Simple: its smaller ones for LL (2.7 us) and LL128 (4.0 us) are seen on none of
   the four."""
BLIND_REMARKS = """The ratios are those at 64 KiB, 512 KiB, 4 MiB, 32 MiB, 256 MiB and 1 GiB, on several hosts also at
1 KiB and 8 KiB before them; Nebius at 512 MiB and 1 GiB. No all-to-all, and no result on more than two hosts, was
found for a preset."""
