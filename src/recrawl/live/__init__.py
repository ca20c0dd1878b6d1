"""The next page, in every slot of a crawler that runs."""
