# The local protocol's sources: built here as a library and, by client/wheel.cmake, into the Python module.
set(proto_local_sources local/protocol.cc)
