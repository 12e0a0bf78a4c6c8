# The local protocol's sources: built here as a library and, by client/wheel.cmake, into the Python module.
set(proto_local_sources local/peer_frames.cc local/probe_frames.cc local/protocol.cc local/sampling_frames.cc)
