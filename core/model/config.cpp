// The module tree.
