"""Answers: values, intervals, explanations, plots and disclosures. Post-processing: nothing here sees data."""
