"""From a study to finished cells: plan, execution, pool."""
