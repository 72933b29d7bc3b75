"""How much a producer has under way, and a frame of it carries."""

IN_FLIGHT_MAX = 1024
IN_FLIGHT_BYTES_MAX = 64 << 20
FRAME_BYTES_MAX = 4 << 20
#: A request that opens a producer, without its session token.
OPENING_BYTES_MAX = 8 << 10
