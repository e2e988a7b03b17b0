#include "agent/lifecycle/duties.hpp"

#include "agent/lifecycle/load_balancers.hpp"
#include "agent/lifecycle/node_writer.hpp"
#include "drain/cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Waits until the kubelet has reported the current boot Ready.
asio::awaitable<void> kubelet_is_back(const Context& context) {
  while (!context.activity.must_reload() && !context.mirror.kubelet_reports_this_boot()) {
    co_await context.writer.show(reason::node_not_ready, "the kubelet has not reported this boot Ready yet");
    co_await context.activity.wait(context.within(look_interval));
  }
}

asio::awaitable<void> undo_cordon(const Context& context) {
  Backoff backoff(patience);
  while (!context.activity.must_reload()) {
    const std::uint64_t news = context.mirror.news();
    auto change = co_await drain::take_back(context.client, context.rng, context.options.node, context.record.run,
                                            context.within(request_timeout));
    if (change) {
      if (change->after.uid != context.node().uid) co_return context.activity.reload();
      context.mirror.learn(change->after, news);
      context.record.run.clear();
      co_return;
    }
    if (k8s::is_gone(change.error())) co_return context.activity.reload();
    co_await context.writer.show(reason::cannot_uncordon,
                                 "the own cordon cannot be taken back yet: " + change.error().message());
    co_await context.pause(backoff.next(context.rng, change.error().retry_after));
  }
}

}  // namespace

asio::awaitable<void> establish_duties(const Context& context, OwnSlot& slot, Shutdowns& shutdowns) {
  const Record& record = context.record;
  Activity& activity = context.activity;
  const Duties duties = duties_of(record.state);
  // Removes the ready file, even in `ready`: this process has not proved anything yet, and the machine may have booted
  // since.
  context.writer.show_ready(false);
  // If the boot must be verified first, the cordon stays until then.
  const bool verifies = context.rebooted() && next_state(record.state, Event::boot_changed);
  const bool uncordon = !verifies && (duties.cordon == Duty::no || (duties.cordon == Duty::keep && record.uncordon));
  const bool ours = uncordon && !record.run.empty();
  if (ours) co_await shutdowns.until_called_off();
  if (ours && context.rebooted()) co_await kubelet_is_back(context);
  if (ours && !activity.must_reload()) co_await undo_cordon(context);
  if (uncordon && !activity.must_reload()) co_await return_to_load_balancers(context);
  if (duties.turn == Duty::no && !activity.must_reload()) co_await slot.release();
  if (!activity.must_reload()) co_await context.writer.show_condition();
}

}  // namespace haulout::agent
