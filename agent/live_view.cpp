#include "agent/live_view.hpp"

#include "agent/duration.hpp"
#include "agent/text.hpp"

namespace haulout::agent {
namespace {

using drain::EventType;
using drain::PodOutcome;

constexpr std::size_t widest_bar = 40;
constexpr std::size_t narrowest_bar = 8;

std::string bar(std::size_t done, std::size_t total, std::size_t width, bool utf8) {
  const std::size_t filled = total == 0 ? 0 : width * done / total;
  std::string result = utf8 ? "" : "[";
  for (std::size_t i = 0; i < width; ++i) result += i < filled ? (utf8 ? "█" : "#") : (utf8 ? "░" : "-");
  return result + (utf8 ? "" : "]");
}

std::string head_line(const LiveState& state, const Terminal& terminal, std::size_t width, WallTime now) {
  const drain::Progress& progress = state.progress;
  std::string counts = fmt::format("{}/{} gone", progress.vanished, progress.to_evict);
  if (progress.terminating != 0) counts += fmt::format(", {} terminating", progress.terminating);
  if (progress.waiting != 0) counts += fmt::format(", {} waiting", progress.waiting);
  if (state.settling) counts += ", settling";
  counts += "  " + format_duration(std::max(Duration::zero(), Duration(now - state.started)));
  const std::string name = "node/" + state.node;
  const std::size_t used = columns(name) + columns(counts) + 4 + (terminal.utf8 ? 0 : 2);
  if (used + narrowest_bar > width) return clipped(name + "  " + counts, width, terminal.utf8);
  const std::size_t bar_width = std::min(widest_bar, width - used);
  return name + "  " + bar(progress.vanished, progress.to_evict, bar_width, terminal.utf8) + "  " + counts;
}

std::string pod_line(const LivePod& pod, std::size_t key_width, WallTime now) {
  const bool waiting = pod.outcome == PodOutcome::waiting;
  std::string line =
      fmt::format("  {} {} {:>6}", padded(waiting ? "waiting" : "terminating", 11), padded(pod.key, key_width),
                  format_duration(std::max(Duration::zero(), Duration(now - pod.since))));
  if (waiting) line += "  " + (pod.message.empty() ? pod.reason : printable(pod.message));
  return line;
}

// Waiting ones first, then the oldest.
std::vector<const LivePod*> in_order(const LiveState& state) {
  std::vector<const LivePod*> pods;
  for (const auto& [uid, pod] : state.held) pods.push_back(&pod);
  std::sort(pods.begin(), pods.end(), [](const LivePod* a, const LivePod* b) {
    const auto rank = [](const LivePod* pod) {
      return std::tuple(pod->outcome != PodOutcome::waiting, pod->since, std::string_view(pod->key));
    };
    return rank(a) < rank(b);
  });
  return pods;
}

std::string colored(std::string line, const char* code, const Terminal& terminal) {
  return terminal.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, line) : line;
}

}  // namespace

void LiveState::apply(const drain::Event& event) {
  if (event.node != node) *this = LiveState{};
  if (node.empty()) {
    node = event.node;
    started = event.at;
  }
  progress = event.progress;
  settling = event.type == EventType::settling;
  switch (event.type) {
    case EventType::parked:
    case EventType::evicted: {
      if (event.pod == nullptr) break;
      const bool parked = event.type == EventType::parked;
      const PodOutcome outcome = parked ? PodOutcome::waiting : PodOutcome::terminating;
      LivePod& pod = held[event.pod->uid];
      if (pod.outcome != outcome) pod.since = event.at;
      pod = {event.pod->key(), outcome, event.pod->reason, event.pod->message, pod.since};
      break;
    }
    case EventType::vanished:
      if (event.pod != nullptr) held.erase(event.pod->uid);
      break;
    case EventType::diagnosis_raised:
    case EventType::diagnosis_withdrawn:
      if (event.diagnosis == nullptr) break;
      std::erase_if(diagnoses, [&](const drain::Diagnosis& known) {
        return known.code == event.diagnosis->code && known.subject == event.diagnosis->subject;
      });
      if (event.type == EventType::diagnosis_raised) diagnoses.push_back(*event.diagnosis);
      break;
    case EventType::disconnected: trouble = "not connected: " + printable(event.message); break;
    case EventType::throttled: trouble = "the server asks to slow down: " + printable(event.message); break;
    case EventType::reconnected: trouble.clear(); break;
    default: break;
  }
}

std::vector<std::string> render(const LiveState& state, const Terminal& terminal, WallTime now) {
  if (terminal.width < 2 || terminal.height < 2) return {};
  const std::size_t width = terminal.width - 1;  // the last column makes some terminals wrap
  const auto fit = [&](const std::string& line) { return clipped(line, width, terminal.utf8); };
  std::vector<std::string> notes;
  if (!state.trouble.empty()) notes.push_back(colored(fit("  " + state.trouble), "31", terminal));
  for (const drain::Diagnosis& diagnosis : state.diagnoses)
    notes.push_back(
        colored(fit(fmt::format("  {} {}: {}", diagnosis.code, diagnosis.subject, printable(diagnosis.message))), "33",
                terminal));

  std::vector<std::string> lines{head_line(state, terminal, width, now)};
  const std::size_t room = terminal.height - 2;  // without the head and the cursor's line
  notes.resize(std::min(notes.size(), room));
  const std::vector<const LivePod*> pods = in_order(state);
  const std::size_t pod_room = room - notes.size();
  const std::size_t shown = pods.size() <= pod_room ? pods.size() : (pod_room == 0 ? 0 : pod_room - 1);
  std::size_t key_width = 0;
  for (std::size_t i = 0; i < shown; ++i) key_width = std::max(key_width, columns(pods[i]->key));
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(fit(pod_line(*pods[i], key_width, now)));
  if (shown < pods.size() && pod_room != 0) lines.push_back(fit(fmt::format("  and {} more", pods.size() - shown)));
  lines.insert(lines.end(), notes.begin(), notes.end());
  return lines;
}

LiveView::LiveView(boost::asio::any_io_executor executor, Clock& clock, Console& console,
                   std::function<Terminal()> measure)
    : clock_(clock), console_(console), measure_(std::move(measure)), changed_(std::move(executor)) {}

void LiveView::on_event(const drain::Event& event) {
  state_.apply(event);
  shown_ = event.type != EventType::finished;
  changed_.notify();
}

boost::asio::awaitable<void> LiveView::run() {
  for (;;) {
    co_await changed_.wait_until(clock_, clock_.now() + tick);
    draw();
    co_await clock_.sleep_until(clock_.now() + shortest_gap);
  }
}

void LiveView::clear() {
  shown_ = false;
  console_.set_block({});
}

void LiveView::draw() {
  console_.set_block(shown_ ? render(state_, measure_(), clock_.wall_now()) : std::vector<std::string>{});
}

}  // namespace haulout::agent
