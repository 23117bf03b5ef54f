"""The sizes of the engine's channels and staging areas, on which compiled programs and simulations depend."""

# Of each rank and track. A few times the private cache of a core: see engine/include/unisono/memory.hpp.
STAGING_BYTES = 2 * 1024 * 1024
TRACKS_BETWEEN_HOSTS = 4  # passes of a call in flight, so that the network carries some while others are added up
DEPTH = 8  # messages in a channel; docs/adr/0008 says why it must be 4 at least
