"""tools/tidy finds what it should, and finds nothing in this tree."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIDY = ROOT / "tools" / "tidy"
LAYERS = "common/base: -\noperator/core: common/base\nsidecar/core: common/base\n"


def run(root):
    done = subprocess.run([sys.executable, TIDY, "--root", root], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.fixture
def tree(tmp_path):
    """A small checkout without findings; each test adds one violation."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    write(tmp_path, "layers.txt", LAYERS)
    write(tmp_path, "CMakeLists.txt", "add(plan.cc plan_test.cc)\n")
    write(tmp_path, "operator/core/plan.h", "#pragma once\n")
    write(tmp_path, "operator/core/plan.cc", '#include "operator/core/plan.h"\n')
    write(tmp_path, "tests/unit/operator/core/plan_test.cc", "int x;\n")
    return tmp_path


def write(root, path, text):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def test_this_tree_has_no_findings():
    code, out = run(ROOT)
    assert code == 0, out


def test_a_clean_tree_has_no_findings(tree):
    assert run(tree) == (0, "tidy: 0 finding(s)\n")


SINS = [
    ("a layer that looks up", "operator/core/plan.cc", '#include "sidecar/core/engine.h"\n', "may not include"),
    ("a clock in the core", "operator/core/plan.cc", "auto t = std::chrono::steady_clock::now();\n", "take `now`"),
    ("randomness in the core", "operator/core/plan.cc", "std::random_device device;\n", "seeded Prng"),
    ("file access in the core", "operator/core/plan.cc", 'auto fd = ::open("x", 0);\n', "an edge reads them"),
    ("a log line in the core", "operator/core/plan.cc", 'log::info("x");\n', "return the reason"),
    ("a heavy header out of place", "operator/core/plan.h", "#pragma once\n#include <cpprest/json.h>\n", "heavy header"),
    ("a core file without a test", "operator/core/other.cc", "\n", "has no test"),
    ("a source that no CMakeLists.txt builds", "common/base/dead.cc", "\n", "no CMakeLists.txt builds"),
    ("a header without a guard", "common/base/open.h", "\n", "#pragma once"),
    ("a vague file name", "common/base/utils.h", "#pragma once\n", "name the file after its contents"),
    ("a file over the limit", "common/base/giant.py", "x\n" * 451, "split it by idea"),
    ("a file that is not Python", "bench/a.py", "import json import sys\n", "not Python"),
    ("a long function", "operator/core/plan.cc", "int plan(\n    int x) {\n" + "    x += 1;\n" * 36 + "}\n", "plan has 36 lines"),
    ("a long method", "operator/core/plan.h", "#pragma once\nclass P {\n    int p() const {\n" + "        go();\n" * 36 + "    }\n};\n",
     "p has 36 lines"),
    ("a listed function that is short now", "tools/long_functions.txt", "operator/core/plan.cc plan 40\n", "drop the line"),
    ("a comment without a subject", "operator/core/plan.h", "#pragma once\n// Of a plan; empty: none.\n", "begin with the subject"),
    ("a sentence without a subject", "docs/a.md", "# one\n\nIt ends. Who asks waits.\n", "begin with the subject"),
    ("a cell without a subject", "docs/a.md", "# one\n\n| a | Of the pool |\n", "begin with the subject"),
    ("a docstring without a subject", "tools/a.py", 'def f():\n    """Of a job."""\n', "begin with the subject"),
    ("a message without a subject", "operator/core/plan.cc", 'auto x = "Who may not ask waits";\n', "begin with the subject"),
    ("a private metaphor", "operator/core/plan.cc", "// the referee decides\n", "write an oracle"),
    ("a message with a banned phrase", "operator/core/plan.cc", 'fail("a stands twice");\n', "write a duplicate"),
    ("a test's name without a subject", "tests/unit/operator/core/plan_test.cc", "TEST(Plan, OfNothing) {}\n", "states a fact"),
    ("a Python test's name without a subject", "tests/contract/a_test.py", "def test_who_asks():\n    pass\n", "states a fact"),
    ("two titles on a page", "docs/a.md", "# one\n# two\n", "2 titles"),
    ("an unlisted folder", "common/new/a.h", "#pragma once\n", "not in layers.txt"),
]


@pytest.mark.parametrize("path,text,words", [sin[1:] for sin in SINS], ids=[sin[0] for sin in SINS])
def test_each_violation_is_found(tree, path, text, words):
    write(tree, path, text)
    code, out = run(tree)
    assert code == 1 and words in out, out
    assert path in out


def test_listed_function_may_keep_its_length(tree):
    body = "int plan() {\n" + "    go();\n" * 36 + "}\n"
    write(tree, "operator/core/plan.cc", body)
    write(tree, "tools/long_functions.txt", "operator/core/plan.cc plan 36\n")
    assert run(tree)[0] == 0
    write(tree, "operator/core/plan.cc", body.replace("go();", "go();\n    on();"))
    code, out = run(tree)
    assert code == 1 and "the limit is 36" in out


def test_long_classes_and_tables_are_not_functions(tree):
    write(tree, "operator/core/plan.h", "#pragma once\nstruct P {\n" + "    int p = f();\n" * 40 + "};\n"
          "const int kTable[] = {\n" + "    f(1),\n" * 40 + "};\n")
    assert run(tree)[0] == 0


def test_words_banned_at_the_start_of_a_sentence_are_allowed_in_code_and_in_mid_sentence(tree):
    write(tree, "operator/core/plan.h", "#pragma once\n// The share of a pool, and the user who asks.\n// Office hours. Whole.\n")
    write(tree, "docs/a.md", "# one\n\n`Of the pool`, that is all.\n\n```\nWho asks? Of us.\n```\n")
    write(tree, "operator/core/plan.cc", "int luck = 0;  // `luck` is uniform\n")
    assert run(tree)[0] == 0


def test_function_limit_is_the_same_everywhere():
    limits = [re.search(pattern, (ROOT / path).read_text()).group(1) for path, pattern in (
        ("tools/tidy", r"FUNCTION_LINES_MAX = (\d+)"), (".clang-tidy", r"LineThreshold, +value: (\d+)"),
        ("CONTRIBUTING.md", r"Functions under (\d+) lines"))]
    assert len(set(limits)) == 1, limits


def test_no_header_includes_the_json_library_through_another_folders_header(tree):
    write(tree, "layers.txt", LAYERS + "operator/api: -\noperator/kube: operator/api\n")
    write(tree, "operator/api/json.h", "#pragma once\n#include <cpprest/json.h>\n")
    assert run(tree)[0] == 0
    write(tree, "operator/kube/client.h", '#pragma once\n#include "operator/api/json.h"\n')
    code, out = run(tree)
    assert code == 1 and "heavy header in a header" in out
