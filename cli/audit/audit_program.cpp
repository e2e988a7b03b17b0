#include "cli/audit/audit_program.hpp"

#include "agent/process/process.hpp"
#include "audit/audit.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/audit/audit_report.hpp"

namespace haulout::cli {
namespace {

// Fails with Errc::invalid.
Result<audit::Baseline> baseline_of(const std::string& file) {
  if (file.empty()) return audit::Baseline();
  const auto text = read_whole_file(file);
  if (!text) return Error(Errc::invalid, "--baseline " + text.error().message());
  auto baseline = read_baseline(*text);
  if (!baseline) return Error(Errc::invalid, "--baseline " + file + " cannot be used: " + baseline.error().message());
  return baseline;
}

std::vector<std::string> team_labels_of(const AuditSettings& settings) {
  if (!settings.team_labels.empty()) return settings.team_labels;
  return {std::begin(default_team_labels), std::end(default_team_labels)};
}

void print(Console& console, agent::Sink& out, const Settings& settings, const audit::Report& report) {
  switch (settings.output) {
    case OutputFormat::json: return out.write(audit_json(report));
    case OutputFormat::junit: return out.write(audit_junit(report, settings.audit.fail_on));
    case OutputFormat::sarif: return out.write(audit_sarif(report));
    case OutputFormat::html: return out.write(audit_page(report));
    case OutputFormat::text:
    case OutputFormat::wide:
    case OutputFormat::jsonl: break;
  }
  for (const std::string& line : audit_lines(report)) console.say(line);
}

int audit_cluster(agent::Process& process, Console& console, const Settings& settings, const RunToEnd& run) {
  auto config = config_of(console, settings.rehearse);
  if (!config) return agent::exit_usage;
  const auto baseline = baseline_of(settings.audit.baseline);
  if (!baseline) return failed(console, baseline.error(), agent::exit_usage);
  SnapshotGot got = get_snapshot(process, console, settings, run, {.directories = true, .more = {"services", "jobs"}});
  if (!got.snapshot) return got.exit_code;
  auto report = audit::audit(
      {.snapshot = *std::move(got.snapshot),
       .source = got.source,
       .config = *std::move(config),
       .assumptions = settings.rehearse.assumptions,
       .team_labels = team_labels_of(settings.audit),
       .rehearse_at_most = settings.audit.no_rehearse ? 0 : static_cast<std::size_t>(settings.audit.rehearse_at_most)});
  if (!report) return failed(console, report.error(), agent::exit_connection);
  audit::forget_known(*report, *baseline);
  print(console, process.out, settings, *report);
  const int code = exit_code(*report, settings.audit.fail_on);
  return code == agent::exit_done ? got.exit_code : code;
}

}  // namespace

int audit_cluster(agent::Process& process, const Settings& settings, const RunToEnd& run) {
  const bool is_text = settings.output == OutputFormat::text;
  agent::Sink& text = is_text ? static_cast<agent::Sink&>(process.out) : process.err;
  Console console(text, process.err);
  return finish_output(process.out, process.err, is_run_for_its_output(settings),
                       audit_cluster(process, console, settings, run), -1);
}

}  // namespace haulout::cli
