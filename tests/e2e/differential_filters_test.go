package e2e

const refusedFirst = "haulout asks its filters before it touches anything, kubectl cordons first"

func web(s *setup) { s.add(2, Deployment("web", 2)) }

// refused returns a row in which a filter forbids the drain.
func refused(name string, build func(*setup), left string, flags ...string) row {
	return row{
		name: name, build: build, flags: flags,
		want:    outcome{left: left, cordoned: "old"},
		differs: refusedFirst,
		haulout: outcome{left: left},
	}
}

// filterRows returns what the filters decide about each kind of pod.
func filterRows() []row {
	withDaemon := func(s *setup) { web(s); s.add(1, DaemonSet("agent")) }
	withScratch := func(s *setup) { s.add(2, Deployment("cache", 2, EmptyDir)) }
	withBare := func(s *setup) { web(s); s.add(1, Pod("bare")) }
	return []row{
		{
			name: "plain Deployment", build: web,
			want: outcome{done: true, evicted: "web=2", cordoned: "old"},
		},
		refused("DaemonSet", withDaemon, "agent=1 web=2"),
		{
			name: "DaemonSet ignored", build: withDaemon, flags: []string{"--ignore-daemonsets"},
			want: outcome{done: true, left: "agent=1", evicted: "web=2", cordoned: "old"},
		},
		{
			name:  "mirror pod",
			build: func(s *setup) { web(s); s.add(1, MirrorPod("static", s.Node("old"))) },
			want:  outcome{done: true, left: "static=1", evicted: "web=2", cordoned: "old"},
		},
		{
			name: "finished pods",
			build: func(s *setup) {
				web(s)
				s.add(2, Pod("done", Annotate(Becomes, "Succeeded")), Pod("broken", Annotate(Becomes, "Failed")))
			},
			want: outcome{done: true, evicted: "broken=1 done=1 web=2", cordoned: "old"},
		},
		refused("emptyDir", withScratch, "cache=2"),
		{
			name: "emptyDir deleted", build: withScratch, flags: []string{"--delete-emptydir-data"},
			want: outcome{done: true, evicted: "cache=2", cordoned: "old"},
		},
		refused("unmanaged", withBare, "bare=1 web=2"),
		{
			name: "unmanaged forced", build: withBare, flags: []string{"--force"},
			want: outcome{done: true, evicted: "bare=1 web=2", cordoned: "old"},
		},
		refused("several reasons", func(s *setup) {
			withDaemon(s)
			s.add(2, Pod("bare"), Pod("scratch", EmptyDir))
		}, "agent=1 bare=1 scratch=1 web=2", "--delete-emptydir-data"),
	}
}
