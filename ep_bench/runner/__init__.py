"""From a study to finished cells: plan, execute, pool."""
