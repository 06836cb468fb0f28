"""Reading the rows of a type: from Lance, or from columns kept in memory."""
