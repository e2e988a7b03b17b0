#include "cli/rehearse/snapshot_source.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "agent/process/process.hpp"
#include "base/files.hpp"
#include "base/option.hpp"
#include "base/text.hpp"

namespace haulout::cli {
namespace {

namespace fs = std::filesystem;

// Long enough to list all objects of a large cluster in pages.
constexpr Duration snapshot_limit = std::chrono::minutes(5);

// Smaller files are read at once: a directory of manifests may have thousands of them, and each is checked first.
constexpr std::uintmax_t large_file = 16 << 20;  // bytes

Result<rehearse::Document> read_document(const std::string& path) {
  if (path == "-") return rehearse::Document{text_of(std::cin).text, "the standard input"};
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored) && fs::file_size(path, ignored) >= large_file && FilePieces::open(path))
    return rehearse::Document{"", path, true};
  auto text = read_whole_file(path);
  if (!text) return Error(Errc::invalid, "--snapshot " + text.error().message());
  return rehearse::Document{*std::move(text), path};
}

// The files of a directory, and of those in it, that may have objects; sorted.
struct Found {
  std::vector<std::string> files;
  std::vector<std::string> hidden;
};

// Returns true if the file, or a directory on the way to it, is hidden.
bool is_hidden(const fs::path& way) {
  return std::ranges::any_of(way, [](const fs::path& part) { return part.string().starts_with('.'); });
}

Result<Found> files_in(const std::string& directory) {
  Found found;
  std::error_code failure;
  for (fs::recursive_directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string extension = entry->path().extension().string();
    std::error_code ignored;
    if ((extension == ".yaml" || extension == ".yml" || extension == ".json") && entry->is_regular_file(ignored))
      (is_hidden(entry->path().lexically_relative(directory)) ? found.hidden : found.files)
          .push_back(entry->path().string());
  }
  if (failure) return Error(Errc::invalid, "--snapshot " + directory + " cannot be read: " + failure.message());
  if (found.files.empty())
    return Error(Errc::invalid, "--snapshot " + directory + " has no file *.yaml, *.yml or *.json");
  std::ranges::sort(found.files);
  std::ranges::sort(found.hidden);
  return found;
}

Result<rehearse::Snapshot> read_files(const std::vector<std::string>& paths, WallTime now, bool directories) {
  rehearse::Snapshot snapshot{.read_at = now, .stored = true};
  for (const std::string& path : paths) {
    std::error_code ignored;
    std::vector<std::string> files{path};
    const bool is_directory = directories && fs::is_directory(path, ignored);
    if (is_directory) {
      auto found = files_in(path);
      if (!found) return std::move(found).error();
      files = std::move(found->files);
      for (std::string& hidden : found->hidden)
        snapshot.skipped.push_back({rehearse::Skipped::Why::hidden, std::move(hidden)});
    }
    for (const std::string& file : files) {
      auto document = read_document(file);
      if (!document) return std::move(document).error();
      document->found = is_directory;
      snapshot.documents.push_back(*std::move(document));
    }
  }
  return snapshot;
}

// Reads the snapshot from the API server into `into`, which it borrows. After a signal or a failure, `into` stays
// empty.
class SnapshotJob final : public Job {
 public:
  SnapshotJob(Tools tools, std::vector<std::string> more, std::optional<rehearse::Snapshot>& into)
      : tools_(std::move(tools)), more_(std::move(more)), into_(into) {}

  boost::asio::awaitable<void> run() override {
    auto read =
        co_await rehearse::read_snapshot(tools_.client, saturating_add(tools_.clock.now(), snapshot_limit), more_);
    if (!read) {
      exit_code_ = report_failure(tools_, read.error());
      co_return;
    }
    for (const std::string& left : read->left_out)
      tools_.console.warn("warning: the result may be wrong, because the rehearsal has no " + printable(left));
    snapshot_ = std::move(read->snapshot);
  }

  int finish(std::optional<int> signal) override {
    if (signal) return agent::exit_code_of_signal(*signal);
    into_ = std::move(snapshot_);
    return exit_code_;
  }

 private:
  Tools tools_;
  std::vector<std::string> more_;
  std::optional<rehearse::Snapshot>& into_;
  std::optional<rehearse::Snapshot> snapshot_;
  int exit_code_ = agent::exit_done;
};

}  // namespace

int failed(Console& console, const Error& error, int code) {
  console.warn("error: " + printable(error.message()));
  return code;
}

SnapshotGot get_snapshot(agent::Process& process, Console& console, const Settings& settings, const RunToEnd& run,
                         SnapshotWish wish) {
  SnapshotGot got;
  const std::vector<std::string>& paths = settings.rehearse.snapshots;
  if (paths.empty()) {
    const auto make_job = [&](agent::Process&, Tools tools, const Settings& connected) {
      got.source = connected.retire.server;
      return std::make_unique<SnapshotJob>(std::move(tools), wish.more, got.snapshot);
    };
    got.exit_code = run(run_program(process, settings, make_job));
    return got;
  }
  auto files = read_files(paths, process.clock.wall_now(), wish.directories);
  if (!files) {
    got.exit_code = failed(console, files.error(), agent::exit_connection);
    return got;
  }
  got.snapshot = *std::move(files);
  got.source = joined(paths, ", ");
  return got;
}

std::optional<agent::AgentConfig> config_of(Console& console, const RehearseSettings& settings,
                                            agent::FlagValues more) {
  agent::FlagValues flags = std::move(more);
  if (!settings.max_unavailable.empty()) flags.emplace_back("max-unavailable", settings.max_unavailable);
  if (!settings.ramp.empty()) flags.emplace_back("ramp", settings.ramp);
  if (!settings.config_file.empty()) flags.emplace_back("config", settings.config_file);
  auto config =
      settings.config_file.empty() ? agent::read_config(flags, {}, std::nullopt) : agent::load_config(flags, {});
  if (auto* loaded = std::get_if<agent::AgentConfig>(&config)) return std::move(*loaded);
  for (const std::string& problem : split_at(std::get<std::string>(config), '\n'))
    console.warn("error: " + printable(problem));
  return std::nullopt;
}

}  // namespace haulout::cli
