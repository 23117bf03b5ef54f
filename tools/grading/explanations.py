"""The reasons for the largest errors of each machine, as far as the measurements show them."""

MARENOSTRUM = """Why:

- *Block by block reduce-scatter of 1 MiB*: 4.8 ms, nine times as long as predicted. Each of 31 blocks of a buffer
  that is new in each call seems to be registered with the NIC by itself; the cost of the preset counts bytes only.
  That also makes the other calls with two temporary buffers of 1 MiB too short (reduce, reduce-scatter).
- *Scatter and gather of 64 MiB along trees*: the temporary buffer of 32 MiB, at the limit beyond which the C library
  never keeps one, costs a third as much per byte as that of a reduce-scatter.
- *Small rooted collectives* (linear gather and reduce, libbine's broadcast): a rank that is not the root leaves
  after its last message, so iterations overlap in spite of the barrier between them. The rows that are below
  the lower bound are left out; those just above it stay.
- *Small trees of Open MPI* take 5 to 7 us longer than libbine's with the same messages (broadcast of 32 B: 16.3
  and 8.8 us). This is a cost of an implementation, not of the machine.

The choices with a regret above 1.1:

- *All-gather of 64 MiB on 60 nodes*: neighbour exchange takes 178 us for each of its 30 steps, of which the bytes of
  2.2 MB are 96; the model has 27 us for the rendezvous and for the turns of the two directions.
- *Reduce-scatter of 64 MiB, reduce of 1 MiB*: the temporary buffers above; all candidates have two, and the error of
  each is larger than the difference between them.
- *Broadcast of 256 B*: the k-nomial tree beats Open MPI's binomial tree, as predicted (13.8 and 20.1 us), but not
  libbine's binomial tree (10.9 us).
- *All-reduce of 16 KiB on 60 nodes*: Rabenseifner takes 65 us and is predicted to take 56, as recursive doubling is
  (53 to 55 us). 60 is not a power of two, and no row with such a number of ranks calibrates."""

LEONARDO = """Why:

- *All-reduce and Bruck's all-gather of 1 MiB*: the measured times jump by a factor of 8 to 10 from 128 KiB to 1 MiB
  (Rabenseifner: 106 to 851 us), and by 4 to 6 to 8 MiB. All of these have a temporary buffer, recursive doubling
  loses 130 us in each of its 9 steps, and algorithms without such a buffer lose nothing. On 1024 nodes it is the
  same. The reason is not known: the heap keeps a single buffer of 1 MiB, and those of 8 MiB cost nothing.
- *Rings, 64 MiB*: the delay of a rendezvous is an average over what other steps and sizes show. It is too short for
  an all-gather and too long for an all-reduce, whose steps also add.
- *Neighbour exchange of 1 and 64 MiB*: as for the ring, each step takes longer than the average delay.

No choice has a regret above 1.1."""

FUGAKU = """Why:

- *512 MiB*: several algorithms of Fujitsu MPI need 13 to 21 times as long as for 64 MiB, instead of 8 times
  (reduce-based ones most). The file does not show the reason.
- *Bruck's all-to-all up to 16 KiB*: packing of many small blocks costs more than the copies that are counted.
- *Pairwise all-to-all on 4x4x4 nodes, from 1 MiB*: more contention than on a torus whose ranks are numbered
  along its dimensions. The file does not say how ranks are placed.
- *Binary trees*: a rank sends to its children, and receives from them, through several ports. The preset has
  one port, which is right for the linear algorithms.

The choices with a regret above 1.1:

- *Gather of 16 KiB* on 2x2x2 nodes: the root takes 0.5 us longer for each message that is not inline; the model has
  that time on the way of the message, where it overlaps with others.
- *All-gather of 512 MiB* on 2x2x2 nodes: recursive doubling needs 8.9 times as long as for 64 MiB, the ring 7
  times."""
