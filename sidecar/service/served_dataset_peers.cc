// Fetches from peers: ServedDataset's part that knows the group.
#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "sidecar/service/known_reads.h"
#include "sidecar/service/served_dataset.h"

namespace stoker::sidecar {

using domain::SampleId;

void ServedDataset::join_peers(PeerSelf self) {
    self.hello.revision = manifest().revision();
    node_ = self.hello.node;
    peers_ = std::make_unique<PeerFetches>(
        parts_.loop,
        *parts_.peers,
        std::move(self),
        PeerFetches::Callbacks{
            [this](
                SampleIndex sample,
                HeldBytes bytes,
                std::uint32_t crc32c,
                const std::string& from) { on_peer_bytes(sample, std::move(bytes), crc32c, from); },
            [this](SampleIndex sample) {
                apply(engine_->fetch().on_slow(sample, parts_.loop.now()));
            },
            [this](SampleIndex sample) { start_hedge(sample); }});
    engine_->fetch().set_may_ask([this](SampleIndex sample) { return peers_->may_ask(sample); });
    engine_->fetch().set_takes_over(
        [this](SampleIndex sample) { return peers_->takes_over(sample); });
    losses_ = std::make_unique<LossSender>(
        parts_.loop, manifest().sample_count(), [this](const PeerLosses& losses) {
            peers_->tell_all(losses);
        });
    engine_->samplers().set_on_losses(
        [this](const std::string& job, std::uint64_t epoch, auto samples, auto losses) {
            if (losses_ != nullptr && placement_ != nullptr) {
                losses_->note(job, epoch, samples, losses);
            }
        });
}

void ServedDataset::set_group(const control::PeerGroup& group) {
    if (peers_ == nullptr || retiring_) {
        return;
    }
    if (begin_anew(group_.reads, group.reads)) {
        reads_differ_ = false;  // it was said of earlier reads
    }
    group_ = group;
    std::vector<std::string> nodes;
    for (const control::PeerMember& member : group.members) {
        nodes.push_back(member.node);
    }
    const auto self = std::ranges::find(nodes, node_);
    if (nodes.size() < 2 || self == nodes.end()) {
        placed_.clear();
        placed_reads_.reset();
        install(nullptr, group);
        return;
    }
    if (nodes == placed_ && group.reads == placed_reads_) {
        install(placement_, group);  // only addresses or leads have changed
        return;
    }
    place(group, nodes, static_cast<std::size_t>(self - nodes.begin()));
}

void ServedDataset::place(
    const control::PeerGroup& group, const std::vector<std::string>& nodes, std::size_t self) {
    set_placing(true);
    const auto placement = std::make_shared<std::shared_ptr<const Placement>>();
    on_pool(
        [this, placement, nodes, self, reads = group.reads] {
            std::vector<std::uint16_t> owners;
            if (reads && can_place(*reads, manifest().sample_count(), nodes.size())) {
                owners = owners_of(*reads, manifest().sample_count(), nodes.size());
            }
            *placement = std::make_shared<Placement>(
                manifest(),
                [this](SampleIndex sample) { return manifest().sample(SampleId{sample}).key; },
                nodes,
                self,
                std::move(owners));
        },
        [this, placement, group, nodes] {
            if (group_ == group && !retiring_) {
                placed_ = nodes;
                placed_reads_ = group.reads;
                install(*placement, group);
            }
        });
}

void ServedDataset::note_reads_differ(const control::KnownReads& reads) {
    if (group_.reads == reads && !std::exchange(reads_differ_, true)) {
        log::warning(
            "a rank reads in another order than its job's known reads say",
            {{"dataset", config_.name}});
    }
}

void ServedDataset::install(
    std::shared_ptr<const Placement> placement, const control::PeerGroup& group) {
    log::info(
        "the group of peers",
        {{"dataset", config_.name},
         {"version", group.version},
         {"members", group.members.size()},
         {"by_reads", placement != nullptr && placement->has_table()},
         {"own_bytes",
          placement == nullptr ? manifest().total_bytes().count()
                               : placement->own_bytes().count()}});
    placement_ = placement;
    peers_->set_group(placement, group.members);
    apply(engine_->fetch().on_placement(std::move(placement), parts_.loop.now()));
    set_placing(false);
}

void ServedDataset::start_at_peer(const StartFetch& fetch) {
    if (retiring_) {
        return;
    }
    ++busy_;
    peer_fetches_[fetch.sample] = {fetch};
    if (!peers_->ask(fetch.sample)) {
        start_hedge(fetch.sample);
    }
}

// Fetches the sample at the origin; a peer's answer still counts if it comes first.
void ServedDataset::start_hedge(SampleIndex sample) {
    const auto found = peer_fetches_.find(sample);
    if (found == peer_fetches_.end() || found->second.at_origin || !found->second.from.empty() ||
        retiring_) {
        return;
    }
    if (engine_->fetch().sample(sample).from_peer) {
        engine_->fetch().on_redirected(sample, parts_.loop.now());
    }
    if (hedges_.contains(sample)) {
        await_hedge(sample);
        return;
    }
    hedges_[sample] = ++last_hedge_;
    await_hedge(sample);
    const auto info = manifest().sample(SampleId{sample});
    ++busy_;
    std::vector<OriginRequest> one;
    one.push_back(
        {{std::string{info.key}, std::string{info.etag}, info.size_bytes},
         [this, hedge = Hedge{sample, last_hedge_, parts_.loop.now()}](OriginAnswer answer) {
             auto shared = std::make_shared<OriginAnswer>(std::move(answer));
             tasks_.post([this, hedge, shared] {
                 on_hedge_answer(hedge, shared);
                 end_work();
             });
         }});
    origin_.fetch_together(std::move(one));
}

// Waits for the request at the origin. An earlier fetch of the sample may have sent it: then no
// second one is sent.
void ServedDataset::await_hedge(SampleIndex sample) {
    PeerFetch& fetch = peer_fetches_.at(sample);
    fetch.at_origin = true;
    fetch.hedge = hedges_.at(sample);
}

// An answer that comes too late is only counted: the sample may be fetched anew by then.
void ServedDataset::on_hedge_answer(
    const Hedge& hedge, const std::shared_ptr<OriginAnswer>& answer) {
    const Result<OriginBytes>& bytes = answer->bytes;
    hedges_.erase(hedge.sample);
    const auto found = peer_fetches_.find(hedge.sample);
    const bool is_current = found != peer_fetches_.end() && found->second.hedge == hedge.number;
    if (!is_current || !found->second.from.empty()) {
        origin_requests_ += bytes ? bytes->requests : answer->failed_requests;
        origin_bytes_ += bytes ? Bytes{bytes->payload.size()} : Bytes::zero();
        if (is_current) {
            found->second.at_origin = false;  // asked again if the peer's bytes are wrong
        }
        return;
    }
    StartFetch fetch = end_peer_fetch(hedge.sample);
    fetch.from_peer = false;
    if (bytes) {
        ++busy_;
        store_origin_bytes(
            fetch, hedge.started_at, std::shared_ptr<OriginBytes>{answer, &*answer->bytes});
    } else {
        on_fetch_failed(fetch, hedge.started_at, bytes.error(), answer->failed_requests);
    }
}

void ServedDataset::on_peer_bytes(
    SampleIndex sample, HeldBytes bytes, std::uint32_t crc32c, const std::string& from) {
    const auto found = peer_fetches_.find(sample);
    if (found == peer_fetches_.end() || !found->second.from.empty()) {
        return;  // the origin was first
    }
    found->second.from = from;
    if (bytes.bytes.size() != manifest().size_bytes(SampleId{sample})) {
        on_peer_stored(
            sample, fail(ErrorCode::kCorruption, "the peer's sample has a wrong length"));
        return;
    }
    const auto status = std::make_shared<Status>();
    const auto segment_class = found->second.fetch.segment_class;
    on_pool(
        [this, sample, segment_class, bytes = std::move(bytes), crc32c, status] {
            const auto stored =
                store_->append(SampleId{sample}, bytes.bytes, segment_class, crc32c);
            *status = stored ? Status{} : Status{fail(stored.error())};
        },
        [this, sample, status] { on_peer_stored(sample, *status); });
}

void ServedDataset::on_peer_stored(SampleIndex sample, const Status& status) {
    if (status || status.error().code != ErrorCode::kCorruption) {
        if (status) {
            peers_->note_stored(
                sample, peer_fetches_.at(sample).from, engine_->fetch().sizes().of(sample));
        }
        end_peer_fetch(sample);
        on_stored(sample, status);
        return;
    }
    const std::string from = std::exchange(peer_fetches_.at(sample).from, {});
    log::warning(
        "a peer sent wrong bytes", {{"dataset", config_.name}, {"node", from}, {"sample", sample}});
    if (retiring_) {
        end_peer_fetch(sample);
        return;
    }
    start_hedge(sample);
    peers_->on_wrong_bytes(sample, from);
}

void ServedDataset::fetch_for_peer(
    const std::string& node, ConnectionId id, std::uint64_t request, SampleIndex sample) {
    peers_->set_asker(node, sample);
    apply(engine_->fetch().on_fetch(id, request, {sample}, parts_.loop.now()));
}

StartFetch ServedDataset::end_peer_fetch(SampleIndex sample) {
    const auto entry = peer_fetches_.extract(sample);
    end_work();
    return entry.mapped().fetch;
}

// Samples that a peer has sent are still stored; fetches that the origin already answers go on.
void ServedDataset::leave_peers() {
    std::vector<SampleIndex> waiting;
    for (const auto& [sample, fetch] : peer_fetches_) {
        if (fetch.from.empty() && !fetch.at_origin) {
            waiting.push_back(sample);
        }
    }
    for (const SampleIndex sample : waiting) {
        end_peer_fetch(sample);
    }
    if (peers_ != nullptr) {
        losses_.reset();
        peers_->set_group(nullptr, {});
    }
}

void ServedDataset::tell_peers(LeaderStatus& status) const {
    if (peers_ == nullptr) {
        return;
    }
    const PeerTotals& totals = peers_->totals();
    status.peer_samples = totals.samples;
    status.peer_bytes_read = totals.bytes;
    status.peer_hedges = totals.hedges;
    status.peer_failures = totals.failures;
    status.peer_connect_failures = totals.connect_failures;
    status.taken_over_samples = totals.taken_over;
    status.take_overs_lacked = totals.take_overs_lacked;
    status.take_overs_failed = totals.take_overs_failed;
    status.peer_members = placed_.size();
    status.by_reads = placement_ != nullptr && placement_->has_table();
    status.reads_differ = reads_differ_;
    status.peer_group_version = group_.version;
}

}  // namespace stoker::sidecar
