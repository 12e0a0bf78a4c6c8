#include "proto/local/probe_frames.h"

namespace stoker::local {

void put_fields(WireWriter& /*out*/, const AskProbe& /*ask*/) {}

void get_fields(WireReader& /*in*/, AskProbe& /*ask*/) {}

void put_fields(WireWriter& out, const Probe& probe) {
    out.put(probe.id).put(probe.batches);
}

void get_fields(WireReader& in, Probe& probe) {
    probe.id = in.get<std::uint64_t>();
    probe.batches = in.get<std::uint32_t>();
}

void put_fields(WireWriter& out, const Probed& probed) {
    out.put(probed.id)
        .put(static_cast<std::uint64_t>(probed.bypassing ? 1 : 0))
        .put(probed.bypassed_batches)
        .put(probed.bypassed_ns)
        .put(probed.bypassed_bytes)
        .put(probed.cached_batches)
        .put(probed.cached_ns)
        .put(probed.cached_bytes);
}

void get_fields(WireReader& in, Probed& probed) {
    probed.id = in.get<std::uint64_t>();
    probed.bypassing = in.get<std::uint64_t>() != 0;
    for (auto* field :
         {&probed.bypassed_batches,
          &probed.bypassed_ns,
          &probed.bypassed_bytes,
          &probed.cached_batches,
          &probed.cached_ns,
          &probed.cached_bytes}) {
        *field = in.get<std::uint64_t>();
    }
}

}  // namespace stoker::local
