#!/usr/bin/env python3
"""Each rule of house_rules.py must catch its bad samples and leave its good ones alone."""
import unittest

import house_rules

HEADER = "// What it is for.\n#pragma once\n"
DEV = "case $command in\n  help | -h) help ;;\n  build) build ;;\nesac\n"

# rule -> (bad trees, good trees); a tree is {path: text}
COMPARED = "| # | feature | Haulout | other | shown by |\n|---|---|---|---|---|\n"
SHOWN = "[`TestEnds`](../tests/e2e/a_test.go)"
ENDS = {"tests/e2e/a_test.go": "func TestEnds(t *testing.T) {\n"}


def scenario_page(rows):
    """Returns a page with a row for each scenario; `rows` replaces some of them."""
    return "".join(rows.get(number, f"| {number} | it ends | TestEnds |\n") for number in range(1, house_rules.SCENARIOS + 1))


SAMPLES = {
    "directions": (
        [{"retry/a.cpp": '#include "http/client.hpp"\n'}, {"http/a.cpp": '#include "k8s/objects.hpp"\n'},
         {"k8s/a.hpp": HEADER + '#include "drain/drain.hpp"\n'}, {"drain/a.cpp": '#include "agent/cli.hpp"\n'},
         {"drain/a.cpp": '#include "sim/world.hpp"\n'}, {"sim/a.cpp": '#include "drain/drain.hpp"\n'},
         {"agent/gates/a.cpp": '#include "sim/world.hpp"\n'}, {"base/a.cpp": '#include "retry/clock.hpp"\n'},
         {"agent/a.cpp": '#include "cli/program/program.hpp"\n'}, {"cli/a.cpp": '#include "demo/judge.hpp"\n'},
         {"agent/CMakeLists.txt": "haulout_library(agent_gates USES haulout_rehearse)\n"},
         {"agent/a.cpp": '#include "tests/support/x.hpp"\n'},
         {"http/CMakeLists.txt": "haulout_library(http USES haulout_k8s)\n"}],
        [{"drain/a.cpp": '#include "k8s/client.hpp"\n#include "drain/b.hpp"\n'}, {"sim/a.cpp": '#include "http/server.hpp"\n'},
         {"demo/cluster.cpp": '#include "sim/world.hpp"\n'}, {"tests/drain/a.cpp": '#include "sim/world.hpp"\n'},
         {"k8s/CMakeLists.txt": "haulout_library(k8s USES haulout_http)  # not haulout_drain\n"}]),
    "no_cycles": (
        [{"agent/a/a.cpp": '#include "agent/b/b.hpp"\n', "agent/b/b.hpp": HEADER + '#include "agent/a/c.hpp"\n'},
         {"cli/a.cpp": '#include "cli/b/b.hpp"\n', "cli/b/b.cpp": '#include "cli/c/c.hpp"\n', "cli/c/c.cpp": '#include "cli/a.hpp"\n'}],
        [{"agent/a/a.cpp": '#include "agent/a/b.hpp"\n#include "agent/b/b.hpp"\n', "agent/b/b.cpp": '#include "base/text.hpp"\n'},
         {"tests/a/a.cpp": '#include "tests/b/b.hpp"\n', "tests/b/b.cpp": '#include "tests/a/a.hpp"\n'}]),
    "library_homes": (
        [{"drain/a.cpp": "#include <nlohmann/json.hpp>\n"}, {"k8s/codec.hpp": HEADER + "#include <nlohmann/json_fwd.hpp>\n"},
         {"k8s/kubeconfig.cpp": "#include <yaml-cpp/yaml.h>\n"}, {"cli/main.cpp": "#include <boost/log/trivial.hpp>\n"},
         {"sim/a.cpp": "#include <CLI/CLI.hpp>\n"}, {"k8s/a.cpp": "#include <boost/beast/http.hpp>\n"},
         {"cli/main.cpp": "#include <openssl/rand.h>\n"}, {"k8s/a.cpp": "#include <boost/asio/ssl.hpp>\n"},
         {"drain/a.cpp": '#include "k8s/codec_json.hpp"\n'}, {"k8s/client.cpp": "#include <boost/json.hpp>\n"}],
        [{"k8s/codec_pod.cpp": "#include <nlohmann/json.hpp>\n"}, {"http/tls.cpp": "#include <openssl/ssl.h>\n"},
         {"cli/drain/report_json.cpp": "#include <nlohmann/json.hpp>\n"}]),
    "banned_words": (
        [{"drain/a.cpp": f"  {word};\n"} for word in (
            "auto t = std::chrono::steady_clock::now()", "system_clock::now()", "std::this_thread::sleep_for(1s)", "usleep(5)",
            "sleep(1)", "co_spawn(ex, f(), asio::detached)", "asio::co_spawn(ex, f(), done)",
            "co_await this_coro::reset_cancellation_state()", "using namespace asio::experimental::awaitable_operators",
            "std::random_device seed", "std::mutex lock",
            "connection.addMatch(match, handler)", "proxy.callMethodAsync(call, handler, 0)", "bus.processPendingEvent()",
            "if (signal.getMemberName() == name)", "sdbus::ServiceName(name)", "object.addVTable(item)",
            'throw sdbus::Error("org.example.No", "no")', 'object.registerMethod("Reboot")')]
        + [{"tests/drain/a_test.cpp": "  std::this_thread::sleep_for(1ms);\n"}],
        [{"retry/real_clock.cpp": "  return std::chrono::steady_clock::now();\n"}, {"retry/a.cpp": "  co_spawn(ex, f(), g);\n"},
         {"agent/dbus/sdbus_versions.hpp": HEADER + "  connection.addMatch(match, handler);\n"},
         {"agent/dbus/a.cpp": "  throw sdbus::Error(*refusal);\n"},
         {"drain/a.cpp": "  // unlike steady_clock::now\n  clock.sleep_until(t);\n"}]),
    "header_guard": ([{"drain/a.hpp": "// What it is for.\nint f();\n"}], [{"drain/a.hpp": HEADER}]),
    "header_contract": ([{"drain/a.hpp": "#pragma once\nint f();\n"}], [{"drain/a.hpp": HEADER}]),
    "includes_fmt": (
        [{"drain/a.cpp": 'auto text = fmt::format("a");\n'}, {"drain/a.hpp": HEADER + "fmt::string_view a;\n"}],
        [{"drain/a.cpp": '#include <fmt/format.h>\nauto text = fmt::format("a");\n'}, {"drain/b.cpp": "// as fmt:: does\n"},
         {"drain/a.cpp": "fmt::format(x);\n", "drain/a.hpp": HEADER + "#include <fmt/core.h>\n"}]),
    "header_namespace": ([{"drain/a.hpp": HEADER + "using namespace std;\n"}], [{"drain/a.cpp": "using namespace std;\n"}]),
    "class_size": (
        [{"drain/a.hpp": HEADER + "class A {\n" + "  int f(int a = 0);\n" * 26 + "};\n"},
         {"drain/a.cpp": "class A {\n" + "  std::map<int, int> a_;\n" * 21 + "};\n"},
         {"drain/a.cpp": "struct A {\n" + "  int f() const { return 1; }\n" * 26 + "};\n"}],
        [{"drain/a.hpp": HEADER + "class A {\n" + "  void f() { if (a) { b(); } }\n" * 25 + "  int a_ = 0;\n" * 20 + "};\n"},
         {"drain/a.cpp": "struct A {\n" + "  int a = 0;\n" * 40 + "};\n"},
         {"drain/a.cpp": "class A {\n  struct B {\n" + "    int a;\n" * 30 + "  };\n  A(const A&) = delete;\n};\n"}]),
    "cmake_sources": (
        [{"drain/CMakeLists.txt": "haulout_library(drain\n  SOURCES a.cpp)\n"}],
        [{"drain/CMakeLists.txt": "haulout_library(drain SOURCES a.cpp)  # not b.cpp\n", "drain/a.cpp": "int a;\n"},
         {"tests/fuzz/CMakeLists.txt": "set(fuzzed drain/a.cpp)\nlist(TRANSFORM targets APPEND .cpp OUTPUT_VARIABLE x)\n", "drain/a.cpp": "int a;\n"}]),
    "comment_width": ([{"drain/a.cpp": "  // " + "a" * 116 + "\n"}], [{"drain/a.cpp": "  // " + "a" * 115 + "\n"}]),
    "one_object_one_file": (
        [{"drain/a.cpp": "namespace haulout::drain {\nint A::f() {\n", "drain/b.cpp": "namespace haulout::drain {\nA::A() : a(1) {\n"},
         {"sim/a.cpp": "Task<> A::B::f(int a) {\n", "sim/b.cpp": "void A::B::g() {\n"}],
        [{"drain/a.cpp": "namespace haulout::drain {\nint A::f() {\n", "drain/b.cpp": "namespace haulout::drain {\nint B::f() {\n"},
         {"drain/a.cpp": "int A::f() {\n", "drain/b.cpp": "int f() {\n  return A::g();\n}\nconst int b = A::g();\n"},
         {"agent/a/a.cpp": "namespace haulout::a {\nint A::f() {\n", "agent/b/a.cpp": "namespace haulout::b {\nint A::f() {\n"}]),
    "unfinished": ([{"drain/a.cpp": "// TODO: all of it\n"}, {"docs/a.md": "FIXME\n"}], [{"drain/a.cpp": "// to do so\n"}]),
    "own_words": (
        [{"docs/a.md": "see /work/main/README\n"}, {"drain/a.cpp": "// as drain_notes.md 3.3 says\n"}, {"a.sh": "cp x ../shared/x\n"}],
        [{"docs/a.md": "see docs/b.md, [b](b.md) and https://example.org/c.md\n", "docs/b.md": "work/life\n"}]),
    "option_defaults": (
        [{"drain/option_table.cpp": '{"settle", duration<O>(&O::settle), "5s", "How long."},\n'},
         {"agent/config/option_table.cpp": '{"soak", duration<C>(&C::soak),\n "0s",\n "How long."},\n'},
         {"cli/options/flags.cpp": "limit.value_or(std::chrono::seconds(30))\n"},
         {"cli/options/flags.cpp": 'flag.shown_default = "5s";\n'},
         {"drain/option_table.cpp": '"How long it may take. The default is 5 minutes."\n'},
         {"drain/option_table.cpp": '"Default: unlimited."\n'}],
        [{"drain/option_table.cpp": '{"settle", duration<O>(&O::settle), "How long. The default is never more than half of it."},\n'},
         {"agent/config/agent_config.hpp": HEADER + "Duration soak = std::chrono::minutes(5);\n"}]),
    "dev_commands": ([{"dev": DEV, "README.md": "run `./dev biuld`\n"}], [{"dev": DEV, "README.md": "`./dev build`, `./dev help`\n"}]),
    "scenarios": (
        [{**ENDS, "docs/scenarios.md": scenario_page({3: "| 3 | it ends | `Scenario.S03_Ends` |\n"})},
         {"tests/scenario/a_test.cpp": "TEST_F(Scenario, S03_Ends) {}\n"},
         {**ENDS, "docs/scenarios.md": scenario_page({4: "| 4 | it ends | `Scenario.S03_Ends` |\n"}),
          "tests/a_test.cpp": "TEST_F(Scenario, S03_Ends) {}\n"},
         {**ENDS, "docs/scenarios.md": scenario_page({3: "| 3 | it ends | |\n"})},
         {**ENDS, "docs/scenarios.md": scenario_page({3: "| 3 | a | TestEnds |\n| 3 | b | TestEnds |\n"})},
         {**ENDS, "docs/scenarios.md": scenario_page({3: ""})},
         {**ENDS, "docs/scenarios.md": scenario_page({77: ""})},
         {**ENDS, "docs/scenarios.md": scenario_page({}) + "| it ends | TestEnds, `T.B` |\n"}],
        [{**ENDS, "docs/scenarios.md": "| # | what | test |\n|---|---|---|\n"
          + scenario_page({3: "| 3 | it \\| ends | `Scenario.S03_Ends`, TestEnds |\n"}),
          "tests/scenario/a_test.cpp": "TEST_F(Scenario,\n       S03_Ends) {}\n"}]),
    "behaviours": (
        [{"docs/behaviours.md": row, "drain/a.cpp": "int a;\n", "tests/a_test.cpp": "TEST(T, A) {}\n"} for row in (
            "| K1 | a | **as there** | `drain/a.cpp` | `T.B` |\n", "| K1 | a | **as there** | `drain/b.cpp` | `T.A` |\n",
            "| K1 | a | **differs**: so | `drain/a.cpp` | |\n", "| K1 | a | as there | `drain/a.cpp` | `T.A` |\n",
            "| K1 | a | **as there** | `T.A` |\n", "| K1 | a | **not yet** | | |\n| K1 | b | **not yet** | | |\n")],
        [{"docs/behaviours.md": "| # | there | here |\n|---|---|---|\n| K1 | a | **as there**; b | `drain/a.cpp`, `drain/` | `T.A` (c) |\n"
          "| K2 | a | **left out**: b | | |\n", "drain/a.cpp": "int a;\n", "tests/a_test.cpp": "TEST_F(T, A) {}\n"}]),
    "comparison": (
        [{**ENDS, "docs/comparison.md": COMPARED + row} for row in (
            "| D1 | it ends | yes | no |  |\n", "| D1 | it ends | part: at times | no |  |\n", f"| D1 | it ends | yes | {SHOWN} |\n",
            f"| D1 | it ends | soon | no | {SHOWN} |\n", f"| D1 | it ends | yes | planned | {SHOWN} |\n",
            "| D1 | it ends | yes | no | [`TestBegins`](../tests/e2e/a_test.go) |\n",
            "| D1 | it ends | yes | no | [`TestEnds`](../tests/e2e/b_test.go) |\n",
            "| D1 | it ends | no | yes |  |\n| D1 | it ends | no | yes |  |\n", "- D1: as [`TestBegins`](../tests/e2e/a_test.go)\n")],
        [{**ENDS, "tests/a_test.py": "", "docs/comparison.md": COMPARED + f"| D1 | it ends | yes: always | – | {SHOWN} |\n"
          "| D2 | it ends late | no: refused ([why](a.md)) | part |  |\n"
          "| D3 | it ends well | part: by day | yes | [`a_test.py`](../tests/a_test.py) |\n"}]),
    "formatting": ([{"drain/a.cpp": "int   f( ) ;\n"}, {"drain/a.cpp": "int a;\nint\n b;\n"}], [{"drain/a.cpp": "int f();\n"}]),
}


class HouseRules(unittest.TestCase):
    def test_every_rule_has_samples(self):
        self.assertEqual({rule.__name__ for rule in house_rules.RULES}, set(SAMPLES))

    def test_bad_samples_are_caught(self):
        for rule in house_rules.RULES:
            for sample in SAMPLES[rule.__name__][0]:
                with self.subTest(rule=rule.__name__, sample=sample):
                    findings = list(rule(house_rules.Tree(sample)))
                    self.assertTrue(findings)
                    self.assertEqual({finding.rule for finding in findings}, {rule.__name__})
                    self.assertTrue(all(finding.path in set(sample) | {"docs/scenarios.md"} for finding in findings))

    def test_good_samples_pass(self):
        for rule in house_rules.RULES:
            for sample in SAMPLES[rule.__name__][1]:
                with self.subTest(rule=rule.__name__, sample=sample):
                    self.assertEqual(list(rule(house_rules.Tree(sample))), [])

    def test_findings_name_the_line(self):
        finding, = house_rules.banned_words(house_rules.Tree({"drain/a.cpp": "int a;\n\nusleep(1);\n"}))
        self.assertEqual((finding.path, finding.line), ("drain/a.cpp", 3))

    def test_the_real_tree_is_read(self):
        tree = house_rules.Tree.read(house_rules.ROOT)
        self.assertIn("retry/clock.hpp", tree.files)
        self.assertIn("dev", tree.files)
        self.assertFalse([path for path in tree.files if path.startswith("build/")])


if __name__ == "__main__":
    unittest.main()
