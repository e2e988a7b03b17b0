#!/usr/bin/env python3
"""Tests the program that writes the man pages. man_test.sh has the formatters read the pages."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging/man"))
import make_man  # noqa: E402

HELP = r'''
constexpr std::string_view people_exit_codes =
    "\nExit codes:\n"
    "  0 done   1 not done\n";

std::string mark_text(std::string_view program, Command command) {
  const bool on = command == Command::cordon;
  return fmt::format("Mark as {2}schedulable.\n\nUsage:\n  {0} {1} NODE\n", program, to_string(command),
                     on ? "un" : "");
}

std::string show_text(std::string_view program) {
  return fmt::format(
      "Shows \"{{}}\".\n\n"
      "Usage:\n  {0} status\n",
      program);
}

std::string about_text(std::string_view program) {
  return fmt::format("Print.\n\nUsage:\n  {} version\n", program);
}

std::string people_text_of(Command command, std::string_view program) {
  switch (command) {
    case Command::status: return show_text(program);
  }
}

std::string head_of(Command command, std::string_view program) {
  switch (command) {
    case Command::cordon:
    case Command::uncordon: return mark_text(program, command);
  }
}

const std::vector<CommandRow>& command_rows() {
  static const std::vector<CommandRow> rows = {
      {Command::cordon, "cordon", "Close"},
      {Command::uncordon, "uncordon",
       "Open"},
      {Command::status, "status", "Show"},
      {Command::version, "version", "Print"},
  };
}

std::string help_text(std::optional<Command> command, std::string_view program) {
  if (*command == Command::version)
    return about_text(program) + flag_list(command_flags(*command));
}
'''


class Sources(unittest.TestCase):
    def test_texts_are_those_of_the_program(self):
        self.assertEqual({
            "cordon": "Mark as unschedulable.\n\nUsage:\n  haulout cordon NODE\n",
            "uncordon": "Mark as schedulable.\n\nUsage:\n  haulout uncordon NODE\n",
            "status": 'Shows "{}".\n\nUsage:\n  haulout status\n\nExit codes:\n  0 done   1 not done\n',
            "version": "Print.\n\nUsage:\n  haulout version\n",
        }, make_man.heads(HELP))
        self.assertEqual({"cordon": "Close", "uncordon": "Open", "status": "Show", "version": "Print"},
                         make_man.summaries(HELP))

    def test_an_argument_that_is_not_understood_is_an_error(self):
        with self.assertRaisesRegex(make_man.Unreadable, "unknown argument in the text of status"):
            make_man.heads(HELP.replace("      program);", "      program, more());"))

    def test_what_is_missing_is_named(self):
        for what, old, new in [("people_exit_codes", "people_exit_codes", "exit_codes"), ("function people_text_of", "people_text_of", "people"),
                               ("function show_text", "std::string show_text(", "Text show_text("),
                               ("function about_text", "std::string about_text(", "Text about_text("),
                               (r'fmt::format\("…", …\) in the text of status', "fmt::format(\n", "joined(\n")]:
            with self.assertRaisesRegex(make_man.Unreadable, f"no {what}"):
                make_man.heads(HELP.replace(old, new))

    def test_a_command_without_a_text_is_an_error(self):
        with self.assertRaisesRegex(make_man.Unreadable, "no text, or no row, for drain"):
            make_man.heads(HELP.replace("      {Command::status", '      {Command::drain, "drain", "Drain"},\n      {Command::status'))

    def test_tables(self):
        page = "# Flags\n\n## drain\n\n| flag | default | meaning |\n|---|---|---|\n| `--a` |  | x\\|y, \\<z> |\n\n## empty\n\ntext\n"
        self.assertEqual([("drain", [{"flag": "`--a`", "default": "", "meaning": "x|y, <z>"}])], list(make_man.tables(page)))

    def test_edition_is_the_newest_entry(self):
        changelog = ("haulout (0.2.0) unstable; urgency=medium\n\n  * New.\n\n -- A <a@b>  Tue, 01 Dec 2026 12:00:00 +0000\n\n"
                     "haulout (0.1.0) unstable; urgency=medium\n\n -- A <a@b>  Sat, 21 Nov 2026 12:00:00 +0000\n")
        self.assertEqual(("0.2.0", "2026-12-01"), make_man.edition(changelog))

    def test_parts_of_a_help_text(self):
        head = make_man.Head("Does\nit.\n\nReally.\n\nUsage:\n  x a\n  x b\n\nExamples:\n  # one\n  x a\n\nExit codes:\n"
                             "  0 done   1 not done\n  129, 130 ended   several nodes: the largest\n")
        self.assertEqual(["Does it.", "Really."], head.description)
        self.assertEqual(["x a", "x b"], head.usage)
        self.assertEqual("# one\nx a", head.examples)
        self.assertEqual([("0", "done"), ("1", "not done"), ("129, 130", "ended")], head.exit_codes)
        self.assertEqual(["several nodes: the largest"], head.remarks)


class Roff(unittest.TestCase):
    def test_nothing_is_a_request_or_an_escape_by_accident(self):
        self.assertEqual(r"a\e\-b \(ga\(aq\(ha\(ti \[u00B5]s", make_man.escaped("a\\-b `'^~ µs"))
        self.assertEqual([r"\&.x"], make_man.prose(".x"))
        self.assertEqual([".nf", r"\&.x", r"\(aqy\(aq", ".fi"], make_man.literal_block(".x\n'y'"))

    def test_code_and_flags_are_bold_and_links_are_names(self):
        self.assertEqual([r"see \fBa\-b\fR, \fB\-\-max\-wait\fR: docs/tasks.md"],
                         make_man.prose("see `a-b`, --max-wait: [tasks](tasks.md#b)"))

    def test_synopsis(self):
        self.assertEqual(r"\fBhaulout\fR \fBstatus\fR [\fINODE\fR...] [\fIflags\fR]",
                         make_man.synopsis("haulout status [NODE...] [flags]"))

    def test_option_has_names_default_and_value(self):
        row = {"option": "`-n`, `--namespace`", "value": "name", "default": "`a,b`", "meaning": "Where."}
        self.assertEqual([".TP", r"\fB\-n\fR, \fB\-\-namespace\fR=\fIa,\:b\fR", "Where. Value: name."], make_man.option(row))


class Pages(unittest.TestCase):
    def test_each_command_has_a_page_with_each_of_its_flags(self):
        pages = make_man.pages()
        rows = make_man.summaries((ROOT / make_man.HELP).read_text())
        self.assertEqual({"haulout.1", "haulout-as-service.8"} | {make_man.name_of(name) + f".{make_man.SECTIONS.get(name, 1)}" for name in rows}, set(pages))
        for heading, flags in make_man.tables((ROOT / "docs/flags.md").read_text()):
            page = pages["haulout.1" if heading == make_man.CONNECTION else f"haulout-{heading}.1"]
            for row in flags:
                for name in row["flag"].replace("`", "").split(", "):
                    self.assertIn(make_man.escaped(name), page, heading)

    def test_no_markdown_is_left(self):
        for name, text in make_man.pages().items():
            self.assertNotRegex(text, r"\]\(|\\\(ga", name)


if __name__ == "__main__":
    unittest.main()
