"""The reasons for the largest errors of each machine, as far as the measurements show them."""

MARENOSTRUM = """Why:

- *Small rooted collectives* (linear gather and reduce, libbine's broadcast): a rank that is not the root leaves
  after its last message, so iterations overlap in spite of the barrier between them. The rows that are below
  the lower bound are left out; those just above it stay.
- *Small trees of Open MPI* take 5 to 7 us longer than libbine's with the same messages (broadcast of 32 B: 16.3
  and 8.8 us). This is a cost of an implementation, not of the machine.
- *Linear scatter of 1 and 8 MiB*: Open MPI's root waits for each rendezvous before it sends to the next rank.
  In the simulator messages of consecutive steps leave one after the other without that wait.
- *Broadcast of 512 MiB with bine_lat_new*: 284 ms, 21 times as long as 64 MiB. All other trees need 8 times as
  long.
- *Recursive doubling of 1 MiB*: a temporary buffer of 1 MiB is allocated in each call; at 128 KiB and at 8 MiB
  the model is right. That the allocation is the reason is an assumption.
- *Rings on 60 nodes at 1 MiB*: the blocks of 17 KiB are just above the limit for eager messages of the preset.
- *Binary reduce of 128 KiB*: Open MPI receives from both children at once.
- The choice for a *broadcast of 256 B*: the k-nomial tree beats Open MPI's binomial tree, as predicted (13.8
  and 20.1 us), but not libbine's binomial tree (10.9 us). The other choices that miss the best do so by less
  than 7 %, which is less than the difference between implementations of the same program."""

LEONARDO = """Why:

- *All-reduce of 1 MiB*: the measured times jump by a factor of 8 from 128 KiB to 1 MiB (Rabenseifner: 106 to
  851 us), and by 4.4 to 8 MiB: probably, temporary buffers are allocated in each call.
- *Rings, neighbour exchange and messages block by block, 1 to 64 MiB*: every rendezvous waits for both sides,
  so that the slowest of 512 ranks sets the pace of each step. A step of a ring with messages of 128 KiB takes
  48 us, of which the bytes are 11; on 32 nodes of MareNostrum 5 it takes 15 us more than the bytes. The model
  has no noise."""

FUGAKU = """Why:

- *512 MiB*: several algorithms of Fujitsu MPI need 13 to 21 times as long as for 64 MiB, instead of 8 times
  (reduce-based ones most). The file does not show the reason.
- *Bruck's all-to-all up to 16 KiB*: packing of many small blocks costs more than the copies that are counted.
- *Pairwise all-to-all on 4x4x4 nodes, from 1 MiB*: more contention than on a torus whose ranks are numbered
  along its dimensions. The file does not say how ranks are placed.
- *Binary trees*: a rank sends to its children, and receives from them, through several ports. The preset has
  one port, which is right for the linear algorithms.
- The choices for a *scatter of 16 KiB and 1 MiB and a gather of 16 KiB* on 2x2x2 nodes: the root of Fujitsu
  MPI's linear algorithms seems to wait for each message before it turns to the next rank, and the model has no
  such wait.
- The choice for an *all-gather of 512 MiB* on 2x2x2 nodes: recursive doubling needs 8.9 times as long as for
  64 MiB, the ring 7 times."""
