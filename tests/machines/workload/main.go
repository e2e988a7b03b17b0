// Command workload is the only program in the containers of the tests. It waits for SIGTERM, runs on for the time given
// by -lingers, and ends. Without arguments it is the sandbox container of a pod.
package main

import (
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	lingers := flag.Duration("lingers", 0, "how long it goes on after SIGTERM")
	flag.Parse()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
	time.Sleep(*lingers)
}
