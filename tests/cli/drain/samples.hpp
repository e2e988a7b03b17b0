// Sample reports and events for tests that render them. No I/O.
#pragma once

#include "drain/observer.hpp"

namespace haulout::cli::samples {

inline WallTime at(int seconds) {
  return WallTime(std::chrono::sys_days(std::chrono::year(2026) / 3 / 4)) + std::chrono::hours(5) +
         std::chrono::seconds(seconds);
}

inline drain::PodReport pod(std::string name, drain::PodOutcome outcome, std::string reason = "",
                            std::string message = "") {
  drain::PodReport report;
  report.ns = "shop";
  report.name = std::move(name);
  report.uid = "uid-" + report.name;
  report.outcome = outcome;
  report.reason = std::move(reason);
  report.message = std::move(message);
  return report;
}

inline drain::VolumeReport volume(std::string name, drain::VolumeOutcome outcome) {
  drain::VolumeReport report;
  report.volume = std::move(name);
  report.claim = "shop/data";
  report.driver = "csi.example.com";
  report.attachment = "csi-" + report.volume;
  report.outcome = outcome;
  report.message = "csi.example.com is detaching it";
  return report;
}

// Returns the report of a detached volume. `reattach` says whether another node has the volume.
inline drain::VolumeReport detached_volume(std::string name, drain::Reattach reattach, std::string message = {}) {
  drain::VolumeReport report = volume(std::move(name), drain::VolumeOutcome::detached);
  report.detached_at = at(10);
  report.reattach = reattach;
  if (reattach == drain::Reattach::attached) report.attached_to = "n2";
  report.message = std::move(message);
  return report;
}

inline drain::Report report(drain::Outcome outcome, std::vector<drain::PodReport> pods = {}) {
  drain::Report result;
  result.node = "n1";
  result.outcome = outcome;
  result.started_at = at(0);
  result.finished_at = at(65);
  result.pods = std::move(pods);
  return result;
}

// Returns an event about node n1. It borrows `about` and `diagnosis`.
inline drain::Event event(drain::EventType type, int seconds = 0, const drain::PodReport* about = nullptr,
                          const drain::Diagnosis* diagnosis = nullptr, std::string message = "",
                          drain::Progress progress = {}) {
  static const std::string node = "n1";
  return {type, at(seconds), node, about, diagnosis, std::move(message), progress};
}

}  // namespace haulout::cli::samples
