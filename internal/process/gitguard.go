package process

// GitGuard are variables for the environment of an agent in a project that its owner does not trust: they keep git from
// starting what the project's .git/config names as file system monitor or puts into its hooks folder, which even
// `git status` would run (git-config(1), GIT_CONFIG_COUNT; it is stronger than any file).
//
// They are not a sandbox: a filter, pager, alias, or external diff of the project's configuration can still name a
// program, and the owner's own hooks do not run either. Whoever sets GIT_CONFIG_COUNT after them removes them.
func GitGuard() []string {
	return []string{
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=/dev/null",
	}
}
