#include "sidecar/simulate/node_model.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/domain/segment_format.h"

namespace stoker::simulate {

namespace {

// Window samples that are offered before a full window counts as full for good.
constexpr std::uint32_t kVictimsMax = 64;

struct Overlap {
    std::size_t begin = 0;  // in the older list
    std::size_t length = 0;
};

// Where the newer list goes on with the older one, and how far they are the same.
Overlap overlap_of(std::span<const SampleIndex> older, std::span<const SampleIndex> newer) {
    const auto begin = newer.empty() ? older.end() : std::ranges::find(older, newer.front());
    const auto end = std::mismatch(begin, older.end(), newer.begin(), newer.end()).first;
    return {static_cast<std::size_t>(begin - older.begin()), static_cast<std::size_t>(end - begin)};
}

}  // namespace

class NodeModel::MayGo final : public sidecar::EvictionPolicy::MayGo {
public:
    explicit MayGo(const NodeModel& node)
        : node_(node) {}

    bool operator()(SampleIndex sample) const override { return node_.may_go(sample); }

private:
    const NodeModel& node_;
};

NodeModel::NodeModel(Setting setting)
    : setting_(std::move(setting)),
      link_(setting_.origin),
      records_(setting_.sizes.size()),
      counts_needs_(setting_.samplers.size()),
      foreseen_(setting_.samplers.size()) {}

void NodeModel::begin_epoch(const EpochStart& start, TimePoint /*now*/) {
    counts_needs_[start.job] = start.reads_all && setting_.scan == nullptr;
    if (counts_needs_[start.job]) {
        for (Record& record : records_) {
            ++record.needs;
        }
    }
    const auto before = std::exchange(foreseen_[start.job], {});
    forget(before);
    drop_forgotten();
}

void NodeModel::foresee(
    std::size_t job, std::span<const SampleIndex> samples, EpochFigures& figures, TimePoint now) {
    std::vector<SampleIndex>& foreseen = foreseen_[job];
    const Overlap same = overlap_of(foreseen, samples);
    forget(std::span{foreseen}.first(same.begin));
    forget(std::span{foreseen}.subspan(same.begin + same.length));
    const auto known = samples.first(same.length);
    foreseen.assign(known.begin(), known.end());
    if (setting_.window_bytes == Bytes{}) {
        for (const SampleIndex sample : foreseen) {
            fetch_ahead(sample, figures, now);  // what found no place may find one now
        }
    }
    for (const SampleIndex sample : samples.subspan(same.length)) {
        if (!fetch_ahead(sample, figures, now)) {
            break;
        }
        foreseen.push_back(sample);
        ++records_[sample].near;
    }
    drop_forgotten();
}

// False: the window is full. What could never wait there and is not kept is left to the read.
bool NodeModel::fetch_ahead(SampleIndex sample, EpochFigures& figures, TimePoint now) {
    Record& record = records_[sample];
    if (record.place != Place::kAbsent) {
        return true;
    }
    if (!keep(sample)) {
        return record_bytes(sample) > setting_.window_bytes;
    }
    record.ready = link_.transfer(now, Bytes{setting_.sizes[sample]});
    record.fresh = true;
    pay(sample, figures);
    return true;
}

void NodeModel::forget(std::span<const SampleIndex> samples) {
    for (const SampleIndex sample : samples) {
        --records_[sample].near;
        forgotten_.push_back(sample);
    }
}

// What was fetched ahead and not drawn then.
void NodeModel::drop_forgotten() {
    for (const SampleIndex sample : forgotten_) {
        drop_if_superfluous(sample);
    }
    forgotten_.clear();
}

bool NodeModel::may_go(SampleIndex sample) const {
    return records_[sample].holds == 0 && records_[sample].near == 0;
}

void NodeModel::expect(std::size_t job, std::span<const SampleIndex> samples) {
    counts_needs_[job] = true;
    for (const SampleIndex sample : samples) {
        ++records_[sample].needs;
    }
}

void NodeModel::request(std::size_t job, Batch& batch, EpochFigures& figures, TimePoint now) {
    TimePoint ready = now;
    batch.hits.clear();
    for (const Draw& draw : batch.draws) {
        Record& record = records_[draw.served];
        ++record.holds;
        const bool here = record.place != Place::kAbsent;
        const bool hit = here && !std::exchange(record.fresh, false);
        batch.hits.push_back(hit);
        figures.hits += hit ? 1 : 0;
        // What an L-request foresaw was fetched together with its neighbours, in a package.
        const bool unimportant =
            draw.kind == Draw::Kind::kSubstituted || draw.kind == Draw::Kind::kUnimportant;
        figures.packaged_samples += here && !hit && unimportant ? 1 : 0;
        if (!here) {
            pay(draw.served, figures);
        }
        ready = std::max(ready, here ? record.ready : fetch(draw.served, now));
    }
    answers_.push_back({job, batch.number, ready});
}

void NodeModel::pay(SampleIndex sample, EpochFigures& figures) const {
    ++figures.origin_requests;
    ++figures.origin_samples;
    figures.origin_bytes += Bytes{setting_.sizes[sample]};
}

TimePoint NodeModel::fetch(SampleIndex sample, TimePoint now) {
    const TimePoint ready = link_.transfer(now, Bytes{setting_.sizes[sample]});
    if (keep(sample)) {
        records_[sample].ready = ready;
    }
    return ready;
}

void NodeModel::consume(std::size_t job, const Batch& batch, EpochFigures& figures, TimePoint now) {
    for (std::size_t i = 0; i < batch.draws.size(); ++i) {
        const SampleIndex sample = batch.draws[i].served;
        Record& record = records_[sample];
        --record.holds;
        if (counts_needs_[job]) {
            STOKER_CHECK(record.needs > 0, "a job whose reads are counted reads nothing else");
            --record.needs;
        }
        setting_.policy->on_read(sample, batch.hits[i]);
        drop_if_superfluous(sample);
    }
    work_in_background(figures, now);
}

void NodeModel::work_in_background(EpochFigures& figures, TimePoint now) {
    if (setting_.background == nullptr) {
        return;
    }
    work_.drops.clear();
    work_.fetches.clear();
    setting_.background->take_work(work_);
    for (const SampleIndex sample : work_.drops) {
        drop(sample);
    }
    // What is in the window for somebody needs no refill.
    std::erase_if(work_.fetches, [this](SampleIndex sample) {
        return records_[sample].place != Place::kAbsent;
    });
    for (const SampleIndex sample : work_.fetches) {
        const TimePoint ready = link_.transfer(now, Bytes{setting_.sizes[sample]});
        pay(sample, figures);
        ++figures.refill_samples;
        if (keep(sample)) {
            records_[sample].ready = ready;
        }
    }
}

std::vector<Node::Answer> NodeModel::take_answers() {
    return std::exchange(answers_, {});
}

bool NodeModel::keep(SampleIndex sample) {
    const Bytes bytes = record_bytes(sample);
    if (resident_ + bytes <= setting_.resident_bytes || make_resident_room(sample, bytes)) {
        store(sample, Place::kResident, bytes);
        return true;
    }
    if (window_bytes_ + bytes <= setting_.window_bytes || make_window_room(bytes)) {
        store(sample, Place::kWindow, bytes);
        return true;
    }
    return false;
}

bool NodeModel::make_resident_room(SampleIndex sample, Bytes bytes) {
    if (bytes > setting_.resident_bytes) {
        return false;
    }
    victims_.clear();
    const Bytes needed = resident_ + bytes - setting_.resident_bytes;
    if (!setting_.policy->make_room(sample, needed, MayGo{*this}, victims_)) {
        return false;
    }
    for (const SampleIndex victim : victims_) {
        drop(victim);
    }
    return resident_ + bytes <= setting_.resident_bytes;
}

bool NodeModel::make_window_room(Bytes bytes) {
    if (bytes > setting_.window_bytes) {
        return false;
    }
    if (setting_.scan != nullptr) {
        victims_.clear();
        setting_.scan->victims(kVictimsMax, true, victims_);
        for (const SampleIndex victim : victims_) {
            if (window_bytes_ + bytes <= setting_.window_bytes) {
                break;
            }
            if (records_[victim].place == Place::kWindow && may_go(victim)) {
                drop(victim);
            }
        }
        return window_bytes_ + bytes <= setting_.window_bytes;
    }
    for (std::size_t looks = window_.size();
         looks > 0 && window_bytes_ + bytes > setting_.window_bytes;
         --looks) {
        const SampleIndex oldest = window_.front();
        window_.pop_front();
        if (records_[oldest].place != Place::kWindow) {
            continue;
        }
        if (may_go(oldest)) {
            drop(oldest);
        } else {
            window_.push_back(oldest);
        }
    }
    return window_bytes_ + bytes <= setting_.window_bytes;
}

void NodeModel::store(SampleIndex sample, Place place, Bytes bytes) {
    records_[sample].place = place;
    records_[sample].fresh = false;
    if (place == Place::kResident) {
        resident_ += bytes;
        setting_.policy->on_resident(sample, bytes);
    } else {
        window_bytes_ += bytes;
        if (setting_.scan == nullptr) {
            window_.push_back(sample);
            while (records_[window_.front()].place != Place::kWindow) {
                window_.pop_front();  // it went by itself
            }
        }
    }
    if (setting_.scan != nullptr) {
        setting_.scan->on_stored(sample, place == Place::kResident);
    }
    for (sidecar::Sampler* sampler : setting_.samplers) {
        sampler->on_stored(sample);
    }
}

void NodeModel::drop(SampleIndex sample) {
    Record& record = records_[sample];
    const Bytes bytes = record_bytes(sample);
    if (record.place == Place::kResident) {
        resident_ -= bytes;
        setting_.policy->on_gone(sample);
    } else {
        STOKER_CHECK(record.place == Place::kWindow, "only what is here can go");
        window_bytes_ -= bytes;
    }
    record.place = Place::kAbsent;
    if (setting_.scan != nullptr) {
        setting_.scan->on_gone(sample);
    }
    for (sidecar::Sampler* sampler : setting_.samplers) {
        sampler->on_gone(sample);
    }
}

void NodeModel::drop_if_superfluous(SampleIndex sample) {
    const Record& record = records_[sample];
    if (record.place == Place::kWindow && record.holds == 0 && !is_needed(sample)) {
        drop(sample);
    }
}

bool NodeModel::is_needed(SampleIndex sample) const {
    const Record& record = records_[sample];
    return record.near > 0 ||
           (setting_.scan != nullptr ? setting_.scan->is_needed(sample) : record.needs > 0);
}

Bytes NodeModel::record_bytes(SampleIndex sample) const {
    return Bytes{domain::record_bytes(setting_.sizes[sample])};
}

}  // namespace stoker::simulate
