// The CRDs and the structs of operator/api have the same fields: the operator would silently ignore
// a field that only the CRD has, and users could never set one that only the parser has.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "operator/api/cache_pool.h"
#include "operator/api/cache_quota.h"
#include "operator/api/dataset.h"
#include "operator/api/dataset_warmup.h"
#include "operator/api/training_job.h"

namespace stoker::control {
namespace {

using FieldSet = std::set<std::string>;

// Every field below `schema`, as the parsers write them: "spec.datasets[].name".
void gather(const YAML::Node& schema, const std::string& path, FieldSet& fields) {
    for (const auto& property : schema["properties"]) {
        const std::string here = path + "." + property.first.as<std::string>();
        fields.insert(here);
        const YAML::Node field = property.second;
        const bool is_list = field["items"] && field["items"]["properties"];
        gather(is_list ? field["items"] : field, is_list ? here + "[]" : here, fields);
    }
}

FieldSet fields_of_crd(const std::string& plural) {
    const std::string path =
        std::string{STOKER_SOURCE_DIR} + "/crds/stoker.dev_" + plural + ".yaml";
    const YAML::Node schema =
        YAML::LoadFile(path)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    FieldSet fields;
    for (const std::string part : {"spec", "status"}) {
        gather(schema[part], part, fields);
    }
    return fields;
}

// Splits the fields of spec and status that the parser reads: those that it passes on unparsed go
// to `opaque` (without ".*").
void split(const FieldSet& read, FieldSet& known, FieldSet& opaque) {
    for (const std::string& field : read) {
        if (!field.starts_with("spec.") && !field.starts_with("status.")) {
            continue;
        }
        if (field.ends_with(".*")) {
            opaque.insert(field.substr(0, field.size() - 2));
        } else {
            known.insert(field);
        }
    }
}

bool is_below(const std::string& field, const FieldSet& opaque) {
    for (const std::string& part : opaque) {
        if (field.starts_with(part) && field.size() > part.size() &&
            (field[part.size()] == '.' || field[part.size()] == '[')) {
            return true;
        }
    }
    return false;
}

struct Kind {
    std::string plural;
    FieldSet read;
};

std::vector<Kind> kinds() {
    return {
        {"trainingjobs", known_fields<TrainingJob>()},
        {"datasets", known_fields<Dataset>()},
        {"datasetwarmups", known_fields<DatasetWarmup>()},
        {"cachepools", known_fields<CachePool>()},
        {"cachequotas", known_fields<CacheQuota>()}};
}

TEST(CrdFields, ParsersReadEveryField) {
    for (const Kind& kind : kinds()) {
        FieldSet known;
        FieldSet opaque;
        split(kind.read, known, opaque);
        for (const std::string& field : fields_of_crd(kind.plural)) {
            EXPECT_TRUE(known.contains(field) || is_below(field, opaque))
                << kind.plural << ": the CRD has " << field << ", but no parser reads it";
        }
    }
}

TEST(CrdFields, EveryParsedFieldIsInTheCrd) {
    for (const Kind& kind : kinds()) {
        FieldSet known;
        FieldSet opaque;
        split(kind.read, known, opaque);
        FieldSet declared = fields_of_crd(kind.plural);
        EXPECT_GT(declared.size(), 20U);
        if (kind.plural == "datasets") {
            // packing.from is read as a source, but is never a web server, which alone has an index.
            EXPECT_TRUE(declared.insert("spec.packing.from.index").second);
        }
        for (const std::string& field : known) {
            EXPECT_TRUE(declared.contains(field))
                << kind.plural << ": a parser reads " << field << ", but the CRD does not have it";
        }
    }
}

}  // namespace
}  // namespace stoker::control
