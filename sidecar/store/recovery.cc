#include "sidecar/store/recovery.h"

#include <algorithm>
#include <optional>

#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "sidecar/store/segment_scan.h"

namespace stoker::sidecar {

namespace {

using domain::Residency;
using domain::RevisionId;
using domain::SampleId;
using domain::SegmentSeq;

// The revision of a file in the directory, temporary files included; nullopt: not one of our files.
std::optional<RevisionId> revision_of_file(std::string_view name) {
    constexpr std::string_view kTemporary = ".tmp";
    if (name.ends_with(kTemporary)) {
        name.remove_suffix(kTemporary.size());
        // The temporary file of a manifest from a peer is called `<name>.<number>.tmp`.
        const auto end = name.find_last_not_of("0123456789");
        if (end != std::string_view::npos && name[end] == '.' &&
            domain::parse_manifest_name(name.substr(0, end))) {
            name.remove_suffix(name.size() - end);
        }
    }
    if (const auto manifest = domain::parse_manifest_name(name)) {
        return manifest;
    }
    if (const auto residency = domain::parse_residency_name(name)) {
        return residency;
    }
    return domain::parse_state_name(name);
}

class Recovery {
public:
    Recovery(Device& device, const domain::ManifestView& manifest, const StoreOptions& options)
        : device_(device),
          manifest_(manifest),
          options_(options),
          words_(manifest.sample_count()) {}

    Result<RecoveredDirectory> run() {
        STOKER_TRY_VOID(device_.make_folder(segments_path()));
        STOKER_TRY_VOID(unlink_other_revisions());
        STOKER_TRY_VOID(open_table_and_state());
        STOKER_TRY(const auto numbers, list_segments());
        for (const SegmentSeq seq : numbers) {
            recover_segment(seq);
        }
        doom_empty_segments();
        publish_words();
        for (const std::string& path : doomed_) {
            unlink(path);  // after correcting the table: no reader may find a word without a file
        }
        out_.lowest_number = lowest_number(numbers);
        return std::move(out_);
    }

private:
    [[nodiscard]] std::string segments_path() const {
        return join_path(options_.directory, domain::kSegmentFolder);
    }

    [[nodiscard]] bool is_kept(RevisionId revision) const {
        return revision == manifest_.revision() ||
               std::ranges::find(options_.keep_revisions, revision) !=
                   options_.keep_revisions.end();
    }

    // Whether the file is a temporary file of the manifest in use. That manifest is complete, so
    // the temporary file is useless.
    [[nodiscard]] bool is_left_over(std::string_view name) const {
        const std::string whole = domain::manifest_file(manifest_.revision());
        return name.starts_with(whole) && name.ends_with(".tmp");
    }

    Status unlink_other_revisions() {
        for (const std::string& folder : {options_.directory, options_.control_directory}) {
            STOKER_TRY(const auto names, device_.list(folder));
            for (const std::string& name : names) {
                const auto revision = revision_of_file(name);
                if (revision.has_value() && (!is_kept(*revision) || is_left_over(name))) {
                    unlink(join_path(folder, name));
                }
            }
        }
        return {};
    }

    // Unlinks a file. If that fails, the next recovery tries again.
    void unlink(const std::string& path) {
        if (const Status status = device_.unlink(path); !status.has_value()) {
            log::warning("cannot unlink", {{"path", path}, {"error", status.error().message}});
        }
    }

    Status open_table_and_state() {
        STOKER_TRY(
            out_.table,
            ResidencyFile::open(
                device_, options_.directory, {manifest_.revision(), manifest_.sample_count()}));
        STOKER_TRY(
            state_,
            load_state(
                device_,
                join_path(options_.control_directory, domain::state_file(manifest_.revision()))));
        rebooted_ = state_.has_value() && state_->boot_id != options_.boot_id;
        table_counts_ = out_.table->existed() && state_.has_value() && !rebooted_;
        out_.report.verified_checksums = !table_counts_;
        out_.report.after_clean_stop = state_.has_value() && state_->clean;
        return {};
    }

    Result<std::vector<SegmentSeq>> list_segments() {
        STOKER_TRY(const auto names, device_.list(segments_path()));
        std::vector<SegmentSeq> numbers;
        for (const std::string& name : names) {
            if (const auto seq = domain::parse_segment_name(name)) {
                numbers.push_back(*seq);
            }
        }
        std::ranges::sort(numbers);
        return numbers;
    }

    void recover_segment(SegmentSeq seq) {
        const auto path = join_path(options_.directory, domain::segment_file(seq));
        const auto file = device_.open(path);
        if (!file.has_value()) {
            leave_unread(path, file.error());
            return;
        }
        const auto header = read_segment_header(**file);
        if (!header.has_value() && header.error().code != ErrorCode::kCorruption &&
            header.error().code != ErrorCode::kInvalidArgument) {
            leave_unread(path, header.error());
            return;
        }
        if (!header.has_value() || header->seq != seq || !is_kept(header->revision)) {
            drop_segment(path);
        } else if (header->revision == manifest_.revision()) {
            recover_records(path, **file, *header);
        }
    }

    void drop_segment(const std::string& path) {
        ++out_.report.segments_dropped;
        doomed_.push_back(path);
    }

    // Whether the header may have been written by this program. Readers map `capacity_bytes`, and
    // samples are only in segments of class resident or window.
    static bool is_usable(const domain::SegmentHeader& header, std::uint64_t file_bytes) {
        return (header.segment_class == domain::SegmentClass::kResident ||
                header.segment_class == domain::SegmentClass::kWindow) &&
               header.capacity_bytes <= domain::kSegmentBytesMax &&
               file_bytes <= header.capacity_bytes;
    }

    void leave_unread(const std::string& path, const Error& error) {
        ++out_.report.segments_dropped;
        log::warning("cannot read segment", {{"path", path}, {"error", error.message}});
    }

    void recover_records(
        const std::string& path, DeviceFile& file, const domain::SegmentHeader& header) {
        const bool synced = state_.has_value() && state_->is_synced(header.seq);
        const Trust trust = table_counts_ || synced ? Trust::kFooter : Trust::kChecksums;
        auto contents = scan_segment(file, header.seq, manifest_, trust);
        if (!contents.has_value()) {
            leave_unread(path, contents.error());
            return;
        }
        if (!is_usable(header, contents->file_bytes)) {
            drop_segment(path);
            return;
        }
        SegmentInfo info;
        info.segment_class = header.segment_class;
        info.synced = synced || rebooted_;  // after a reboot, what can be read comes from the disk
        info.damaged = contents->records_dropped > 0;
        if (!contents->sealed) {
            info.synced = false;
            seal(file, header, *contents);
        }
        info.file_bytes = contents->file_bytes;
        out_.segments.add(header.seq, info);
        out_.report.samples_dropped += contents->records_dropped;
        for (const domain::FooterEntry& record : contents->records) {
            // The record may be dead because it was damaged, which only the previous leader knew.
            // Unless the state file lists the segment as synced, the segment stays suspect.
            if (!take_record(header, record) && !synced) {
                out_.segments.set_damaged(header.seq);
            }
        }
    }

    // Where the footer belongs: after all existing bytes, because nothing is truncated that a reader may have
    // mapped. In a segment that was allocated for one sample in parts: after the record, where the file has zeroes.
    static std::uint64_t footer_place(
        const domain::SegmentHeader& header,
        const SegmentContents& contents,
        std::uint64_t footer_bytes) {
        if (contents.file_bytes == header.capacity_bytes && contents.records.size() == 1) {
            const domain::FooterEntry& record = contents.records.front();
            const std::uint64_t end =
                record.record_offset + domain::record_bytes(record.payload_bytes);
            if (end + footer_bytes == header.capacity_bytes) {
                return end;
            }
        }
        return (contents.file_bytes + domain::kRecordAlignment - 1) / domain::kRecordAlignment *
               domain::kRecordAlignment;
    }

    // Writes the footer that the last leader did not write. If there is no room for it, the segment
    // is scanned again the next time.
    static void seal(
        DeviceFile& file, const domain::SegmentHeader& header, SegmentContents& contents) {
        const auto footer = domain::encode_footer(contents.records, header.seq);
        const std::uint64_t at = footer_place(header, contents, footer.size());
        if (at + footer.size() > header.capacity_bytes) {
            return;
        }
        const std::array<DeviceFile::ConstBuffer, 1> parts{footer};
        if (const Status status = file.write(at, parts); !status.has_value()) {
            log::warning("cannot seal segment", {{"error", status.error().message}});
            return;
        }
        contents.file_bytes = at + footer.size();
    }

    // Accepts a live record. False: the record is dead.
    bool take_record(const domain::SegmentHeader& header, const domain::FooterEntry& record) {
        const Residency where{header.segment_class, header.seq, record.record_offset};
        const std::uint64_t word = domain::pack_residency(where);
        if (table_counts_ && out_.table->load(record.sample) != word) {
            return false;  // the sample was dropped, moved, or not yet published
        }
        // Segments are visited in ascending order, so the newer of two copies wins.
        std::uint64_t& chosen = words_.at(record.sample.value());
        if (const auto older = domain::unpack_residency(chosen)) {
            out_.segments.remove_live(older->segment, domain::record_bytes(record.payload_bytes));
        } else {
            ++out_.report.samples_kept;
        }
        chosen = word;
        out_.segments.add_live(header.seq, domain::record_bytes(record.payload_bytes));
        return true;
    }

    void publish_words() {
        for (std::uint64_t id = 0; id < words_.size(); ++id) {
            const std::uint64_t old_word = out_.table->load(SampleId{id});
            if (const auto old = domain::unpack_residency(old_word)) {
                highest_in_table_ = std::max(highest_in_table_, old->segment.value());
            }
            if (old_word != words_[id]) {
                out_.table->store(SampleId{id}, words_[id]);
            }
        }
    }

    void doom_empty_segments() {
        std::vector<SegmentSeq> empty;
        for (const auto& [seq, info] : out_.segments.all()) {
            if (info.live_samples == 0) {
                empty.push_back(seq);
            }
        }
        for (const SegmentSeq seq : empty) {
            out_.segments.erase(seq);
            doomed_.push_back(join_path(options_.directory, domain::segment_file(seq)));
        }
        out_.report.segments_kept = out_.segments.all().size();
    }

    // A fallback in case the mark in the directory (SegmentNumbers) was deleted.
    [[nodiscard]] std::uint64_t lowest_number(const std::vector<SegmentSeq>& numbers) const {
        const std::uint64_t in_table = std::uint64_t{highest_in_table_} + 1;
        const std::uint64_t in_files =
            numbers.empty() ? 0 : std::uint64_t{numbers.back().value()} + 1;
        return std::max({in_files, in_table, std::uint64_t{options_.sequence_floor}});
    }

    Device& device_;
    const domain::ManifestView& manifest_;
    const StoreOptions& options_;
    std::vector<std::uint64_t> words_;  // future content of the residency table, by sample
    std::vector<std::string> doomed_;   // segment files to unlink at the end
    std::optional<StoreState> state_;
    bool rebooted_ = false;
    bool table_counts_ = false;  // the last leader ran under this boot, and its table exists
    std::uint32_t highest_in_table_ = 0;
    RecoveredDirectory out_;
};

}  // namespace

Result<RecoveredDirectory> recover_directory(
    Device& device, const domain::ManifestView& manifest, const StoreOptions& options) {
    return Recovery{device, manifest, options}.run();
}

}  // namespace stoker::sidecar
