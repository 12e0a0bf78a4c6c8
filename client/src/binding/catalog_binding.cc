#include <pybind11/stl.h>

#include "client/src/binding/bindings.h"
#include "client/src/binding/core_error.h"
#include "client/src/core/catalog.h"
#include "common/base/crc32c.h"
#include "common/domain/chunk_format.h"
#include "common/domain/http_index.h"
#include "common/domain/http_uri.h"
#include "common/domain/range_place.h"
#include "common/domain/shard_format.h"
#include "common/domain/tar_index.h"

namespace stoker::client {

namespace {

namespace py = pybind11;
using ListedTuple = std::tuple<std::string, std::uint64_t, std::string>;

py::str decode_text(std::string_view text) {
    PyObject* decoded =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
    if (decoded == nullptr) {
        throw py::error_already_set();
    }
    return py::reinterpret_steal<py::str>(decoded);
}

domain::SampleInfo info_of(const Catalog& catalog, std::uint64_t id) {
    if (id >= catalog.manifest().sample_count()) {
        throw py::index_error("sample id is outside the dataset");
    }
    return catalog.manifest().sample(domain::SampleId{id});
}

std::vector<domain::ListedObject> objects_of(const std::vector<ListedTuple>& listing) {
    std::vector<domain::ListedObject> objects;
    objects.reserve(listing.size());
    for (const auto& [key, size_bytes, etag] : listing) {
        objects.push_back({key, size_bytes, etag});
    }
    return objects;
}

std::shared_ptr<Catalog> build(const std::vector<ListedTuple>& listing) {
    return std::const_pointer_cast<Catalog>(value_or_raise(Catalog::build(objects_of(listing))));
}

std::span<const std::byte> view_of(const py::bytes& bytes) {
    const auto text = static_cast<std::string_view>(bytes);
    return std::as_bytes(std::span{text});
}

// Lists the samples of a pack. `first_chunk`: the first bytes of chunk 0; empty: that object is
// missing or too short, which list_samples() reports.
Result<domain::Listing> samples_of(
    std::span<const std::byte> index,
    std::span<const std::byte> first_chunk,
    const std::vector<domain::ListedObject>& objects) {
    STOKER_TRY(auto headers, domain::parse_chunk_index(index));
    if (!first_chunk.empty()) {
        STOKER_TRY_VOID(domain::check_first_chunk(headers, first_chunk));
    }
    return domain::list_samples(std::move(headers), objects);
}

py::list tuples_of(const domain::Listing& listing) {
    py::list samples;
    for (std::size_t i = 0; i < listing.size(); ++i) {
        const domain::Listing::Entry sample = listing[i];
        samples.append(
            py::make_tuple(py::bytes{sample.key}, sample.size_bytes, decode_text(sample.etag)));
    }
    return samples;
}

py::list list_packed(
    const py::bytes& index, const py::bytes& first_chunk, const std::vector<ListedTuple>& objects) {
    return tuples_of(
        value_or_raise(samples_of(view_of(index), view_of(first_chunk), objects_of(objects))));
}

py::object parse_place(const std::string& etag) {
    const auto place = domain::parse_place(etag);
    if (!place) {
        return py::none();
    }
    return py::make_tuple(
        domain::chunk_key(place->chunk),
        place->offset,
        place->crc32c,
        place->chunk_bytes,
        place->chunk_etag);
}

std::shared_ptr<Catalog> from_bytes(const py::bytes& bytes) {
    const auto raw = view_of(bytes);
    return std::const_pointer_cast<Catalog>(
        value_or_raise(Catalog::from_bytes({raw.begin(), raw.end()})));
}

py::bytes to_bytes(const Catalog& catalog) {
    const auto raw = catalog.bytes();
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

py::tuple describe(const Catalog& catalog, std::uint64_t id) {
    const auto info = info_of(catalog, id);
    return py::make_tuple(
        py::bytes{info.key.data(), info.key.size()},
        info.size_bytes,
        decode_text(info.etag),
        info.label);
}

std::vector<std::int32_t> labels(const Catalog& catalog) {
    std::vector<std::int32_t> out;
    out.reserve(catalog.manifest().sample_count());
    for (std::uint64_t id = 0; id < catalog.manifest().sample_count(); ++id) {
        out.push_back(catalog.manifest().sample(domain::SampleId{id}).label);
    }
    return out;
}

std::uint64_t bytes_of(const Catalog& catalog, py::handle ids) {
    std::uint64_t bytes = 0;
    for (const std::uint64_t id : sample_ids(ids, catalog.manifest().sample_count())) {
        bytes += catalog.manifest().sample(domain::SampleId{id}).size_bytes;
    }
    return bytes;
}

py::list classes(const Catalog& catalog) {
    py::list names;
    for (std::uint32_t label = 0; label < catalog.manifest().label_count(); ++label) {
        names.append(decode_text(catalog.manifest().label_name(label)));
    }
    return names;
}

void add_pack_functions(py::module_& module) {
    module.def(
        "crc32c",
        [](const py::bytes& bytes) { return crc32c(view_of(bytes)); },
        py::arg("bytes"),
        "CRC-32C.");
    module.def(
        "list_packed",
        &list_packed,
        py::arg("index"),
        py::arg("first_chunk"),
        py::arg("objects"),
        "The samples of a pack as a listing, from its index, the first CHUNK_FIXED_BYTES of chunk "
        "0 "
        "(empty: it has fewer) and the listing of its chunks.");
    module.attr("CHUNK_FIXED_BYTES") = domain::kChunkFixedBytes;
    module.attr("CHUNK_INDEX_KEY") = py::bytes{domain::kChunkIndexKey};
    module.attr("FIRST_CHUNK_KEY") = py::bytes{domain::chunk_key(0)};
    module.def(
        "parse_place",
        &parse_place,
        py::arg("etag"),
        "(chunk key, offset, crc32c, chunk size, chunk ETag) of a packed sample; None: not "
        "packed.");
}

py::object parse_range_place(const std::string& key, const std::string& etag) {
    const auto place = domain::parse_range_place(key, etag);
    if (!place) {
        return py::none();
    }
    return py::make_tuple(
        py::bytes{place->object_key(key)},
        place->offset,
        place->object_bytes,
        decode_text(place->object_etag),
        place->crc32c);
}

constexpr std::uint64_t kWindowBytesMax = std::uint64_t{4} << 20U;  // 16 threads read a window each

// A shard that is being listed. After the first next(), it has an index and the samples so far.
struct ListedShard {
    domain::ShardFormat format;
    domain::Shard shard;
    domain::Listing samples{};
    std::unique_ptr<domain::ShardIndex> index{};

    [[nodiscard]] py::tuple to_read() const {
        const domain::ListedObject& object = shard.to_read();
        return py::make_tuple(py::bytes{object.key}, object.size_bytes, decode_text(object.etag));
    }

    py::object next() {
        if (index == nullptr) {
            index = value_or_raise(domain::open_shard(format, shard));
        }
        const auto window = index->next(kWindowBytesMax);
        return window ? py::object{py::make_tuple(window->offset, window->length)} : py::none();
    }

    void take(const py::buffer& window) {
        const py::buffer_info info = window.request();
        const auto size = static_cast<std::size_t>(info.size * info.itemsize);
        value_or_raise(index->take({static_cast<const std::byte*>(info.ptr), size}, samples));
    }

    // Ends the index and returns the samples.
    py::list take_samples() {
        index.reset();
        return tuples_of(std::exchange(samples, {}));
    }
};

domain::ShardFormat shard_format(
    const std::string& format, std::uint64_t record_bytes, std::string record_suffix) {
    return {
        domain::parse_sample_format(format).value_or(domain::SampleFormat::kObjects),
        {record_bytes, std::move(record_suffix)}};
}

py::list find_shards(const domain::ShardFormat& format, const std::vector<ListedTuple>& objects) {
    const auto listing = value_or_raise(domain::Listing::of(objects_of(objects)));
    py::list shards;
    for (domain::Shard& shard : value_or_raise(domain::find_shards(format, listing))) {
        shards.append(ListedShard{format, std::move(shard)});
    }
    return shards;
}

py::tuple parse_tar_sample(const py::buffer& bytes) {
    const py::buffer_info info = bytes.request();
    const auto size = static_cast<std::size_t>(info.size * info.itemsize);
    const domain::TarSample sample =
        value_or_raise(domain::parse_tar_sample({static_cast<const std::byte*>(info.ptr), size}));
    py::list members;
    for (const domain::TarSampleMember& member : sample.members) {
        members.append(py::make_tuple(
            decode_text(member.extension), member.offset, member.offset + member.size_bytes));
    }
    return py::make_tuple(decode_text(sample.stem), members);
}

void add_shard_classes(py::module_& module) {
    py::class_<domain::ShardFormat>(module, "ShardFormat", "How samples lie in shards.")
        .def(
            py::init(&shard_format),
            py::arg("format"),
            py::arg("record_bytes") = 0,
            py::arg("record_suffix") = "")
        .def("describe", &domain::ShardFormat::describe, "Names the shards in messages.");
    py::class_<ListedShard>(module, "ListedShard", "The samples of one shard, by range reads.")
        .def("to_read", &ListedShard::to_read, "(key, size, etag) of the object to read.")
        .def(
            "next",
            &ListedShard::next,
            "(offset, length) of the bytes to read next; length may be 0; None: the end.")
        .def("take", &ListedShard::take, py::arg("window"), "Parses the bytes that next() named.")
        .def(
            "take_samples",
            &ListedShard::take_samples,
            "Returns the samples as a listing; call it once, after the end.");
}

bool has_shards(const std::string& format) {
    const auto known = domain::parse_sample_format(format);
    return known && domain::has_shards(*known);
}

void add_shard_functions(py::module_& module) {
    module.def(
        "no_samples",
        [](std::size_t shards) { return domain::no_samples(shards).message; },
        py::arg("shards"),
        "Error message for a listing whose shards have no samples.");
    module.def(
        "has_shards", &has_shards, py::arg("format"), "Whether samples are ranges of shards.");
    module.def(
        "find_shards",
        &find_shards,
        py::arg("format"),
        py::arg("objects"),
        "The shards of a listing, each as a ListedShard.");
    module.def(
        "parse_range_place",
        &parse_range_place,
        py::arg("key"),
        py::arg("etag"),
        "(object key, offset, object size, object ETag, CRC-32C or None) of a sample in a shard; "
        "None: not such a sample.");
    module.def(
        "parse_tar_sample",
        &parse_tar_sample,
        py::arg("bytes"),
        "(stem, [(extension, begin, end) of each member]) in the bytes of a tar sample.");
}

// The entries of a web server's index, as (key, size or None, version).
py::list parse_http_index(const std::string& name, const py::bytes& bytes) {
    py::list entries;
    const domain::HttpIndexReader::Take take = [&](const domain::HttpIndexEntry& entry) -> Status {
        entries.append(
            py::make_tuple(py::bytes{entry.key}, entry.size_bytes, decode_text(entry.version)));
        return {};
    };
    domain::HttpIndexReader reader{name};
    value_or_raise(reader.read(static_cast<std::string_view>(bytes), take));
    value_or_raise(reader.finish(take));
    return entries;
}

void add_web_functions(py::module_& module) {
    module.attr("HTTP_INDEX_NAME") = domain::kHttpIndexName;
    module.attr("HTTP_SECONDS_MAX") = domain::kHttpSecondsMax;
    module.def(
        "check_http_uri",
        [](const std::string& uri) { value_or_raise(domain::check_http_uri(uri)); },
        py::arg("uri"),
        "Raises unless the text is the URL of a folder on a web server.");
    module.def(
        "parse_http_index",
        &parse_http_index,
        py::arg("name"),
        py::arg("bytes"),
        "[(key, size or None, version or empty)] for each line of a web server's index.");
}

}  // namespace

void add_catalog(py::module_& module) {
    add_pack_functions(module);
    add_shard_classes(module);
    add_shard_functions(module);
    add_web_functions(module);
    py::class_<Catalog, std::shared_ptr<Catalog>>(
        module, "Catalog", "The samples of one dataset revision, by id.")
        .def_static(
            "open",
            [](const std::string& path) {
                py::gil_scoped_release release;
                return std::const_pointer_cast<Catalog>(value_or_raise(Catalog::open(path)));
            },
            py::arg("path"),
            "Opens a manifest file by mapping it.")
        .def_static(
            "build",
            &build,
            py::arg("listing"),
            "Makes a catalog from a listing [(key bytes, size, etag)], numbered as by the sidecar.")
        .def_static("from_bytes", &from_bytes, py::arg("bytes"), "Makes a catalog from to_bytes().")
        .def("to_bytes", &to_bytes, "The bytes of the manifest file.")
        .def("__len__", [](const Catalog& self) { return self.manifest().sample_count(); })
        .def("describe", &describe, py::arg("id"), "(key bytes, size, etag, label) of one sample.")
        .def("labels", &labels, "Label of every sample, by id.")
        .def(
            "bytes_of",
            &bytes_of,
            py::arg("ids"),
            "Total size in bytes; repeated ids count repeatedly.")
        .def("classes", &classes, "Folder names, sorted; a label is an index into them.")
        .def_property_readonly(
            "revision", [](const Catalog& self) { return self.manifest().revision().value(); })
        .def_property_readonly("total_bytes", [](const Catalog& self) {
            return self.manifest().total_bytes().count();
        });
}

}  // namespace stoker::client
