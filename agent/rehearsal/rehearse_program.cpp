#include "agent/rehearsal/rehearse_program.hpp"

#include <iostream>
#include <iterator>

#include "agent/exit_code.hpp"
#include "agent/files.hpp"
#include "agent/rehearsal/rehearsal_text.hpp"
#include "agent/rehearsal/snapshot_json.hpp"
#include "agent/text.hpp"
#include "agent/timeline_file.hpp"

namespace haulout::agent {
namespace {

// All lists of a large cluster, page by page.
constexpr Duration snapshot_limit = std::chrono::minutes(5);

Result<std::string> read_document(const std::string& path) {
  if (path == "-") return std::string{std::istreambuf_iterator<char>(std::cin), {}};
  auto text = read_whole_file(path);
  if (!text) return Error(Errc::invalid, "--snapshot " + text.error().message());
  return text;
}

Result<std::vector<std::string>> read_documents(const std::vector<std::string>& paths) {
  std::vector<std::string> documents;
  for (const std::string& path : paths) {
    auto document = read_document(path);
    if (!document) return std::move(document).error();
    documents.push_back(*std::move(document));
  }
  return documents;
}

Assumptions assumptions_of(const Settings& settings) {
  Assumptions assumptions;
  assumptions.ready_after = settings.rehearse.ready_after;
  assumptions.terminate_within = settings.rehearse.terminate_within;
  return assumptions;
}

std::string title_of(const Rehearsal& rehearsal) {
  std::vector<std::string> nodes;
  nodes.reserve(rehearsal.drains.size());
  for (const drain::Report& report : rehearsal.drains) nodes.push_back(report.node);
  return "Rehearsal: drain of " + joined(nodes, ", ");
}

// Plays it, reports, returns the exit code.
int act(Console& console, Sink& out, Clock& clock, const Settings& settings, std::vector<std::string> documents) {
  const auto failed = [&](const Error& error, int code) {
    console.warn("error: " + printable(error.message()));
    return code;
  };
  const Assumptions assumptions = assumptions_of(settings);
  const auto rehearsal = rehearse({.documents = std::move(documents),
                                   .nodes = settings.nodes,
                                   .selector = settings.selector,
                                   .drain = settings.drain,
                                   .assumptions = assumptions,
                                   .now = clock.wall_now()});
  if (!rehearsal) return failed(rehearsal.error(), exit_not_done);
  if (settings.output == OutputFormat::json) out.write(rehearsal_json(*rehearsal, assumptions));
  if (settings.output == OutputFormat::text)
    for (const std::string& line : rehearsal_lines(*rehearsal, assumptions)) console.say(line);
  const auto written = write_timeline(settings.timeline, rehearsal->timeline, title_of(*rehearsal));
  if (!written) return failed(written.error(), exit_not_done);
  return exit_code(*rehearsal);
}

class RehearseJob final : public Job {
 public:
  RehearseJob(Tools tools, Settings settings) : tools_(std::move(tools)), settings_(std::move(settings)) {}

  boost::asio::awaitable<void> run() override {
    if (const auto possible = can_write_timeline(settings_.timeline); !possible) {
      tools_.console.warn("error: " + printable(possible.error().message()));
      exit_code_ = exit_usage;
      co_return;
    }
    auto snapshot = co_await read_snapshot(tools_.client, saturating_add(tools_.clock.now(), snapshot_limit));
    if (!snapshot) {
      exit_code_ = report_failure(tools_, snapshot.error());
      co_return;
    }
    for (const std::string& left : snapshot->left_out)
      tools_.console.warn("warning: rehearsed without " + printable(left));
    exit_code_ = act(tools_.console, tools_.out, tools_.clock, settings_, std::move(snapshot->documents));
  }

  int finish(std::optional<int> signal) override { return signal ? exit_code_of_signal(*signal) : exit_code_; }

 private:
  Tools tools_;
  Settings settings_;
  int exit_code_ = exit_done;
};

}  // namespace

int rehearse_files(Process& process, const Settings& settings) {
  Sink& text = settings.output == OutputFormat::json ? process.err : process.out;
  Console console(text, process.err);
  const auto flushed = [&process](int code) {
    process.out.flush(-1);
    process.err.flush(-1);
    return code;
  };
  const auto failed = [&](const Error& error, int code) {
    console.warn("error: " + printable(error.message()));
    return flushed(code);
  };
  if (const auto possible = can_write_timeline(settings.timeline); !possible)
    return failed(possible.error(), exit_usage);
  auto documents = read_documents(settings.rehearse.snapshots);
  if (!documents) return failed(documents.error(), exit_connection);
  return flushed(act(console, process.out, process.clock, settings, *std::move(documents)));
}

std::unique_ptr<Job> make_rehearse_job(Process&, Tools tools, const Settings& settings) {
  return std::make_unique<RehearseJob>(std::move(tools), settings);
}

}  // namespace haulout::agent
