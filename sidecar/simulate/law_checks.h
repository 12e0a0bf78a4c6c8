#pragma once

#include <vector>

#include "sidecar/simulate/laws.h"
#include "sidecar/simulate/scenario.h"

// The checks behind laws(), by subject.
namespace stoker::simulate {

// Runs a scenario. Crashes if `scenario` is not valid.
Outcome run_law(const Scenario& scenario);

std::vector<LawRow> check_reshuffle();              // T1
std::vector<LawRow> check_selection();              // T2
std::vector<LawRow> check_importance_cost();        // T3
std::vector<LawRow> check_aggregated_importance();  // T4
std::vector<LawRow> check_replication();            // T5
std::vector<LawRow> check_clairvoyance();           // T6
std::vector<LawRow> check_sharing();                // T9
std::vector<LawRow> check_ods();                    // T10
std::vector<LawRow> check_buckets();                // T11
std::vector<LawRow> check_product_scale();          // T12
std::vector<LawRow> check_shadow_heap();            // T13

class RandomWorkload;
// Rows of random_law() that drive a sampler without an engine.
LawRow random_h_share(RandomWorkload& random);
LawRow random_near_duplicates(RandomWorkload& random);
LawRow random_bucket(RandomWorkload& random);

}  // namespace stoker::simulate
